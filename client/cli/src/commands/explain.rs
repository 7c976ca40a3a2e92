//! `explain`: explains in sentences why a job is waiting or how it ended, and prints its history.

use std::process::ExitCode;

use cohabit_client::Explanation;
use cohabit_console::{CommandError, output, with_schema};
use jiff::tz::TimeZone;

use super::logs::resolve_one;
use crate::arguments::{ExplainArguments, OutputFormat};
use crate::endpoint::connect;
use crate::render::documents::ExplanationDocument;
use crate::render::local_time;

pub(super) async fn explain(arguments: ExplainArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let job = resolve_one(&client, &arguments.job).await?;
    let explanation = client.explain(job).await?;
    match arguments.display.output {
        OutputFormat::Json => {
            output::print_document(&with_schema(ExplanationDocument::new(job, explanation)))?
        }
        OutputFormat::Quiet => output::print_text(&explanation.sentences.join("\n"))?,
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&describe_explanation(&explanation, &TimeZone::system()))?
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn describe_explanation(explanation: &Explanation, zone: &TimeZone) -> String {
    let sentences = explanation.sentences.join("\n");
    let chapters =
        explanation.history.iter().map(|event| format!("  {}  {event}\n", local_time(event.at, zone)));
    format!("{sentences}\n\nHistory:\n{}", chapters.collect::<String>())
}
