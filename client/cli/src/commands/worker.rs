//! `worker`: runs a worker, or tells the head to give one no new jobs, or jobs again.

use std::process::ExitCode;

use serde_json::json;

use super::block_on;
use crate::arguments::{NodeArguments, OutputFormat, WorkerVerb};
use crate::connect::connect;
use crate::failure::CommandError;
use crate::output;
use crate::render::documents::with_schema;

#[cfg(feature = "worker")]
pub(super) mod start;

pub(super) fn worker(verb: WorkerVerb) -> Result<ExitCode, CommandError> {
    match verb {
        #[cfg(feature = "worker")]
        WorkerVerb::Start(arguments) => start::start(&arguments),
        WorkerVerb::Drain(arguments) => block_on(drain(arguments)),
        WorkerVerb::Resume(arguments) => block_on(resume(arguments)),
    }
}

async fn drain(arguments: NodeArguments) -> Result<ExitCode, CommandError> {
    let node = connect(&arguments.connection).await?.drain(arguments.node).await?;
    tell(&node, "takes no new jobs; those that run go on", arguments.display.output)
}

async fn resume(arguments: NodeArguments) -> Result<ExitCode, CommandError> {
    let node = connect(&arguments.connection).await?.resume(arguments.node).await?;
    tell(&node, "takes jobs again", arguments.display.output)
}

fn tell(node: &str, what: &str, format: OutputFormat) -> Result<ExitCode, CommandError> {
    match format {
        OutputFormat::Json => output::document(&with_schema(json!({ "node": node, "message": what })))?,
        OutputFormat::Quiet => output::data(node)?,
        OutputFormat::Table | OutputFormat::Wide => output::data(&format!("Node {node} {what}"))?,
    }
    Ok(ExitCode::SUCCESS)
}
