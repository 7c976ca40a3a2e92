//! `nodes`: the machines of the cluster and what they offer.

use std::process::ExitCode;

use jiff::tz::TimeZone;

use crate::arguments::{NodesArguments, OutputFormat};
use crate::connect::connect;
use crate::failure::CommandError;
use crate::output::{self, Screen};
use crate::render::documents::with_schema;
use crate::render::jobs_table::ColumnSet;
use crate::render::node_documents::{NodeDocument, NodeListDocument};
use crate::render::nodes_table::nodes_table;

pub(super) async fn nodes(arguments: NodesArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let nodes = client.nodes().await?;
    let table = |columns| nodes_table(&nodes, columns, &TimeZone::system(), Screen::of_stdout());
    match arguments.display.output {
        OutputFormat::Table => output::data(&table(ColumnSet::Usual))?,
        OutputFormat::Wide => output::data(&table(ColumnSet::Wide))?,
        OutputFormat::Json => output::document(&with_schema(NodeListDocument {
            nodes: nodes.iter().map(NodeDocument::from).collect(),
        }))?,
        OutputFormat::Quiet => nodes.iter().try_for_each(|node| output::data(&node.name))?,
    }
    Ok(ExitCode::SUCCESS)
}
