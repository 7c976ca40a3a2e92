//! `worker`: runs a worker; drains, resumes or unbinds a node.

use std::process::ExitCode;

use cohabit_client::types::DrainRequest;
use cohabit_console::{CommandError, output, with_schema};
use serde_json::json;

use crate::arguments::{DrainArguments, NodeArguments, OutputFormat, WorkerVerb};
use crate::endpoint::connect;
use crate::process::block_on;

#[cfg(feature = "worker")]
pub(super) mod start;

pub(super) fn worker(verb: WorkerVerb) -> Result<ExitCode, CommandError> {
    match verb {
        #[cfg(feature = "worker")]
        WorkerVerb::Start(arguments) => start::start(&arguments),
        WorkerVerb::Drain(arguments) => block_on(drain(arguments)),
        WorkerVerb::Resume(arguments) => block_on(resume(arguments)),
        WorkerVerb::Unbind(arguments) => block_on(unbind(arguments)),
    }
}

async fn drain(arguments: DrainArguments) -> Result<ExitCode, CommandError> {
    let DrainArguments { node, reason, deadline, connection, display } = arguments;
    let request = DrainRequest { node, reason, within: deadline };
    let node = connect(&connection).await?.drain(request).await?;
    let running = match deadline {
        None => "continue".to_owned(),
        Some(span) => format!("continue for {span} and are queued again then"),
    };
    let what = format!("is draining: it starts no new jobs; running jobs {running}");
    print_result(&node, &what, display.output)
}

async fn resume(arguments: NodeArguments) -> Result<ExitCode, CommandError> {
    let node = connect(&arguments.connection).await?.resume(arguments.node).await?;
    print_result(&node, "starts new jobs again", arguments.display.output)
}

async fn unbind(arguments: NodeArguments) -> Result<ExitCode, CommandError> {
    let node = connect(&arguments.connection).await?.unbind(arguments.node).await?;
    print_result(&node, "belongs to the next worker that joins as it", arguments.display.output)
}

fn print_result(node: &str, what: &str, format: OutputFormat) -> Result<ExitCode, CommandError> {
    match format {
        OutputFormat::Json => output::print_document(&with_schema(json!({ "node": node, "message": what })))?,
        OutputFormat::Quiet => output::print_text(node)?,
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&format!("Node {node} {what}"))?,
    }
    Ok(ExitCode::SUCCESS)
}
