//! What everybody holds, used and is entitled to, for `share`.

use cohabit_client::types::{PartyShare, ShareReport};
use cohabit_console::table::{self, cell};
use cohabit_console::{Screen, printable_line};

use crate::share_file::{half_life, number};

/// The table: projects, and below each with several users these, the next in line first.
pub(crate) fn share_table(report: &ShareReport, screen: Screen) -> String {
    let headers =
        ["PROJECT", "USER", "HELD", "ENTITLED", "WAITING", "GPU HOURS", "OF USE", "WEIGHT", "COUNTS"];
    let mut table = table::table(&headers, screen);
    for project in &report.projects {
        let is_named = report.table.projects.contains_key(&project.name);
        let name = if is_named { project.name.as_str() } else { "-" };
        match (is_named, &project.users[..]) {
            (false, [only]) => _ = table.add_row(row(name, &only.user, &project.share)),
            (_, users) => {
                table.add_row(row(name, "", &project.share));
                for user in users {
                    table.add_row(row("", &user.user, &user.share));
                }
            }
        }
    }
    match report.projects[..] {
        [] => format!("{}Nobody holds or waits for any of them.\n", sentence(report)),
        _ => format!("{}\n{}", sentence(report), table::text(&table)),
    }
}

fn sentence(report: &ShareReport) -> String {
    let capacity = tenths(report.capacity);
    match report.is_on {
        true => format!(
            "{capacity} GPUs; whoever is above starts next. What was used counts half after {}.\n",
            half_life(&report.table)
        ),
        false => {
            format!("{capacity} GPUs. Users do not take turns: the head was started with --fair-share off.\n")
        }
    }
}

fn row(project: &str, user: &str, share: &PartyShare) -> Vec<comfy_table::Cell> {
    let hours = share.used as f64 / 3_600_000.0;
    let texts = [
        printable_line(project).into_owned(),
        printable_line(user).into_owned(),
        tenths(share.held),
        tenths(share.entitled),
        tenths(share.waiting),
        format!("{hours:.1}"),
        format!("{:.0}%", share.used_part as f64 / 10.0),
        number(share.weight),
        // Nobody is entitled to anything who wants nothing.
        if share.factor == 0 { "-".to_owned() } else { format!("×{:.2}", share.factor as f64 / 1_000.0) },
    ];
    texts.into_iter().map(cell).collect()
}

/// Thousandths of a GPU, to a tenth.
fn tenths(milli: u64) -> String {
    number((milli + 50) / 100 * 100)
}
