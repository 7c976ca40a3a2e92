//! `nodes`: lists the nodes and their devices.

use std::process::ExitCode;

use cohabit_client::types::Role;
use cohabit_console::{CommandError, Screen, output, with_schema};
use jiff::tz::TimeZone;

use crate::arguments::{NodesArguments, OutputFormat};
use crate::endpoint::connect;
use crate::render::jobs_table::ColumnSet;
use crate::render::node_documents::{NodeDocument, NodeListDocument, RefusedWorkerDocument};
use crate::render::nodes_table::{nodes_table, refused_workers};

pub(super) async fn nodes(arguments: NodesArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let nodes = client.nodes().await?;
    let refused = match client.accepted().await?.by.role {
        Role::Admin => Some(client.refused_workers().await?),
        Role::User | Role::Worker => None,
    };
    let zone = TimeZone::system();
    let table = |columns| {
        let warnings = refused_workers(&nodes, refused.as_deref().unwrap_or_default(), &zone);
        nodes_table(&nodes, columns, &zone, Screen::of_stdout()) + &warnings
    };
    match arguments.display.output {
        OutputFormat::Table => output::print_text(&table(ColumnSet::Usual))?,
        OutputFormat::Wide => output::print_text(&table(ColumnSet::Wide))?,
        OutputFormat::Json => output::print_document(&with_schema(NodeListDocument {
            nodes: nodes.iter().map(NodeDocument::from).collect(),
            refused_workers: refused.map(|all| all.iter().map(RefusedWorkerDocument::from).collect()),
        }))?,
        OutputFormat::Quiet => nodes.iter().try_for_each(|node| output::print_text(&node.name))?,
    }
    Ok(ExitCode::SUCCESS)
}
