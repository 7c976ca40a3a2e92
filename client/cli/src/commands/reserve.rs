//! `reserve`: keeps nodes for maintenance or for some users, lists reservations, or cancels one.

use std::process::ExitCode;

use cohabit_client::types::{NodeReservation, ReservationAccess, ReservationRequest};
use cohabit_console::{CommandError, Screen, output, with_schema};
use jiff::Zoned;
use jiff::tz::TimeZone;

use crate::arguments::{OutputFormat, ReserveArguments, ReserveVerb};
use crate::endpoint::connect;
use crate::render::reservation_documents::{ReservationDocument, ReservationListDocument};
use crate::render::reservations_table::{reservation_line, reservations_table};

pub(super) async fn reserve(arguments: ReserveArguments) -> Result<ExitCode, CommandError> {
    match &arguments.verb {
        None => make(&arguments).await,
        Some(ReserveVerb::List(_)) => list(&arguments).await,
        Some(ReserveVerb::Cancel(cancel)) => {
            let cancelled = connect(arguments.connection()).await?.cancel_reservation(cancel.number).await?;
            print_one(&cancelled, " is cancelled", arguments.display().output)
        }
    }
}

async fn make(arguments: &ReserveArguments) -> Result<ExitCode, CommandError> {
    // A time that cannot be is told of before the head is asked.
    let from = arguments.from.map(|it| it.resolve(&Zoned::now())).transpose();
    let request = ReservationRequest {
        nodes: arguments.nodes.clone(),
        from: from.map_err(CommandError::invalid)?,
        length: arguments.length,
        admits: ReservationAccess {
            users: arguments.user.iter().cloned().collect(),
            projects: arguments.project.iter().cloned().collect(),
        },
        reason: arguments.reason.clone(),
        stop_jobs: arguments.stop_jobs,
    };
    let made = connect(arguments.connection()).await?.reserve(&request).await?;
    print_one(&made, "", arguments.display().output)
}

async fn list(arguments: &ReserveArguments) -> Result<ExitCode, CommandError> {
    let reservations = connect(arguments.connection()).await?.reservations().await?;
    match arguments.display().output {
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&reservations_table(&reservations, &TimeZone::system(), Screen::of_stdout()))?;
        }
        OutputFormat::Json => {
            output::print_document(&with_schema(ReservationListDocument::from(reservations.as_slice())))?;
        }
        OutputFormat::Quiet => {
            reservations.iter().try_for_each(|it| output::print_text(&it.number.to_string()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what was made or cancelled.
fn print_one(
    reservation: &NodeReservation,
    what: &str,
    format: OutputFormat,
) -> Result<ExitCode, CommandError> {
    match format {
        OutputFormat::Json => output::print_document(&with_schema(ReservationDocument::from(reservation)))?,
        OutputFormat::Quiet => output::print_text(&reservation.number.to_string())?,
        OutputFormat::Table | OutputFormat::Wide => {
            let line = reservation_line(reservation, &TimeZone::system());
            output::print_text(&format!("Reservation {}{what}: {line}", reservation.number))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
