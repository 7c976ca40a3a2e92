//! The table of reservations, and one of them as a line.

use cohabit_client::types::NodeReservation;
use cohabit_console::table::{self, cell};
use cohabit_console::{Screen, printable_line};
use jiff::tz::TimeZone;

use super::local_time;

/// The table, with times in `zone`.
pub(crate) fn reservations_table(
    reservations: &[NodeReservation],
    zone: &TimeZone,
    screen: Screen,
) -> String {
    let mut table = table::table(&["NUMBER", "NODES", "FOR", "FROM", "UNTIL", "BY", "REASON"], screen);
    for it in reservations {
        let until = it.until.map_or_else(|| "cancelled".to_owned(), |at| local_time(at, zone));
        let from = local_time(it.from, zone);
        let reason = it.reason.clone().unwrap_or_default();
        let row = [it.number.to_string(), nodes(it), whose(it), from, until, it.by.clone(), reason];
        table.add_row(row.map(cell));
    }
    table::text(&table)
}

/// `maintenance of gpu1, gpu2 from 18:00 until 22:00 (new disks)`.
pub(crate) fn reservation_line(reservation: &NodeReservation, zone: &TimeZone) -> String {
    let until = match reservation.until {
        None => "until it is cancelled".to_owned(),
        Some(until) => format!("until {}", local_time(until, zone)),
    };
    let reason = reservation.reason.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    let nodes = nodes(reservation);
    let what = match reservation.admits.is_maintenance() {
        true => format!("maintenance of {nodes}"),
        false => format!("{nodes} for {}", whose(reservation)),
    };
    let line = format!("{what} from {} {until}{reason}", local_time(reservation.from, zone));
    printable_line(&line).into_owned()
}

fn nodes(reservation: &NodeReservation) -> String {
    reservation.nodes.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Whose jobs run there.
fn whose(reservation: &NodeReservation) -> String {
    if reservation.admits.is_maintenance() {
        return "maintenance".to_owned();
    }
    let users = reservation.admits.users.iter().cloned();
    let projects = reservation.admits.projects.iter().map(|project| format!("project {project}"));
    format!("jobs of {}", users.chain(projects).collect::<Vec<_>>().join(", "))
}
