//! `worker`: runs a worker, or tells the head to give one no new jobs, or jobs again.

use std::process::ExitCode;

use serde_json::json;

use super::finish;
use crate::arguments::{Format, NodeArguments, WorkerVerb};
use crate::connect::connect;
use crate::failure::Failure;
use crate::output;
use crate::render::documents::versioned;

#[cfg(feature = "worker")]
pub(super) mod start;

pub(super) fn worker(verb: WorkerVerb) -> Result<ExitCode, Failure> {
    match verb {
        #[cfg(feature = "worker")]
        WorkerVerb::Start(arguments) => start::start(&arguments),
        WorkerVerb::Drain(arguments) => finish(drain(arguments)),
        WorkerVerb::Resume(arguments) => finish(resume(arguments)),
    }
}

async fn drain(arguments: NodeArguments) -> Result<ExitCode, Failure> {
    let node = connect(&arguments.connection).await?.drain(arguments.node).await?;
    tell(&node, "takes no new jobs; those that run go on", arguments.display.output)
}

async fn resume(arguments: NodeArguments) -> Result<ExitCode, Failure> {
    let node = connect(&arguments.connection).await?.resume(arguments.node).await?;
    tell(&node, "takes jobs again", arguments.display.output)
}

fn tell(node: &str, what: &str, format: Format) -> Result<ExitCode, Failure> {
    match format {
        Format::Json => output::document(&versioned(json!({ "node": node, "message": what })))?,
        Format::Quiet => output::data(node)?,
        Format::Table | Format::Wide => output::data(&format!("Node {node} {what}"))?,
    }
    Ok(ExitCode::SUCCESS)
}
