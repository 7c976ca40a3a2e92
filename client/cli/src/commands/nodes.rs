//! `nodes`: lists the nodes and their devices.

use std::process::ExitCode;

use cohabit_client::types::{NodeReservation, Role};
use cohabit_console::{CommandError, Screen, natural_key, output, with_schema};
use jiff::tz::TimeZone;

use crate::arguments::{NodesArguments, OutputFormat};
use crate::endpoint::connect;

use crate::render::jobs_table::ColumnSet;
use crate::render::nodes_table::{nodes_table, refused_workers};
use crate::render::reservations_table::reservation_line;
use crate::token_expiry::warn_of_other_tokens;
use cohabit_documents::nodes::{NodeDocument, NodeListDocument, RefusedWorkerDocument};

pub(super) async fn nodes(arguments: NodesArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let mut nodes = client.nodes().await?;
    nodes.sort_by_cached_key(|node| natural_key(&node.name));
    let problems = client.head_problems().await?;
    let refused = match client.accepted().await?.by.role {
        Role::Admin => Some(client.refused_workers().await?),
        Role::User | Role::Worker | Role::Viewer => None,
    };
    let columns = match arguments.display.output {
        OutputFormat::Wide => ColumnSet::Wide,
        OutputFormat::Table | OutputFormat::Json | OutputFormat::Quiet => ColumnSet::Usual,
    };
    if arguments.display.output != OutputFormat::Json {
        problems.iter().for_each(|problem| output::print_message(&format!("warning: {problem}")));
    }
    match arguments.display.output {
        OutputFormat::Table | OutputFormat::Wide => {
            let zone = TimeZone::system();
            let warnings = refused_workers(&nodes, refused.as_deref().unwrap_or_default(), &zone);
            let reserved: String =
                client.reservations().await?.iter().map(|it| reserved(it, &zone)).collect();
            let table = nodes_table(&nodes, columns, &zone, Screen::of_stdout());
            output::print_text(&(table + &warnings + &reserved))?;
            warn_of_other_tokens(&client).await;
        }
        OutputFormat::Json => output::print_document(&with_schema(NodeListDocument {
            head_problems: problems,
            nodes: nodes.iter().map(NodeDocument::from).collect(),
            refused_workers: refused.map(|all| all.iter().map(RefusedWorkerDocument::from).collect()),
        }))?,
        OutputFormat::Quiet => nodes.iter().try_for_each(|node| output::print_text(&node.name))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn reserved(reservation: &NodeReservation, zone: &TimeZone) -> String {
    format!("reservation {}: {}\n", reservation.number, reservation_line(reservation, zone))
}
