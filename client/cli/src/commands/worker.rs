//! `worker`: runs a worker; drains, resumes or unbinds a node.

use std::process::ExitCode;

use cohabit_client::types::{DrainRequest, ReservationRequest, Time};
use cohabit_console::{CommandError, DisplayArguments, output, with_schema};
use jiff::Zoned;
use jiff::tz::TimeZone;
use serde_json::json;

use crate::arguments::{ConnectionArguments, DrainArguments, NodeArguments, OutputFormat, WorkerVerb};
use crate::endpoint::connect;
use crate::process::block_on;
use crate::render::local_time;

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
    let DrainArguments { node, reason, deadline, by, connection, display } = arguments;
    if let Some(by) = by {
        let from = by.resolve(&Zoned::now()).map_err(CommandError::invalid)?;
        return drain_later(node, reason, from, &connection, &display).await;
    }
    let request = DrainRequest { node, reason, within: deadline };
    let node = connect(&connection).await?.drain(request).await?;
    let running = match deadline {
        None => "continue".to_owned(),
        Some(span) => format!("continue for {span} and are queued again then"),
    };
    let what = format!("is draining: it starts no new jobs; running jobs {running}");
    print_result(&node, &what, display.output)
}

/// A drain at a time ahead is maintenance without an end.
async fn drain_later(
    node: String,
    reason: Option<String>,
    from: Time,
    connection: &ConnectionArguments,
    display: &DisplayArguments,
) -> Result<ExitCode, CommandError> {
    let (nodes, from) = (vec![node], Some(from));
    let request =
        ReservationRequest { nodes, from, reason, stop_jobs: true, ..ReservationRequest::default() };
    let made = connect(connection).await?.reserve(&request).await?;
    let node = made.nodes.first().map_or("", String::as_str);
    let at = local_time(made.from, &TimeZone::system());
    let what = format!(
        "is drained at {at}: until then it starts jobs that leave it in time; what still runs then is queued again"
    );
    print_result(node, &what, display.output)
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
