//! `nodes`: the machines of the cluster and what they offer.

use std::process::ExitCode;

use jiff::tz::TimeZone;

use crate::arguments::{Format, NodesArguments};
use crate::connect::connect;
use crate::failure::Failure;
use crate::output::{self, Screen};
use crate::render::documents::versioned;
use crate::render::jobs_table::Columns;
use crate::render::node_documents::{Node, Nodes};
use crate::render::nodes_table::nodes_table;

pub(super) async fn nodes(arguments: NodesArguments) -> Result<ExitCode, Failure> {
    let client = connect(&arguments.connection).await?;
    let nodes = client.nodes().await?;
    let table = |columns| nodes_table(&nodes, columns, &TimeZone::system(), Screen::of_stdout());
    match arguments.display.output {
        Format::Table => output::data(&table(Columns::Usual))?,
        Format::Wide => output::data(&table(Columns::Wide))?,
        Format::Json => {
            output::document(&versioned(Nodes { nodes: nodes.iter().map(Node::from).collect() }))?
        }
        Format::Quiet => nodes.iter().try_for_each(|node| output::data(&node.name))?,
    }
    Ok(ExitCode::SUCCESS)
}
