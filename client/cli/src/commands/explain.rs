//! `explain`: why a job waits, or why it ended as it did, in sentences; then its whole story.

use std::process::ExitCode;

use cohabit_client::Explanation;
use jiff::tz::TimeZone;

use super::logs::one;
use crate::arguments::{ExplainArguments, Format};
use crate::connect::connect;
use crate::failure::Failure;
use crate::output;
use crate::render::clock;
use crate::render::documents::{Explained, versioned};

pub(super) async fn explain(arguments: ExplainArguments) -> Result<ExitCode, Failure> {
    let client = connect(&arguments.connection).await?;
    let job = one(&client, &arguments.job).await?;
    let explanation = client.explain(job).await?;
    match arguments.display.output {
        Format::Json => output::document(&versioned(Explained::new(job, explanation)))?,
        Format::Quiet => output::data(&explanation.sentences.join("\n"))?,
        Format::Table | Format::Wide => output::data(&told(&explanation, &TimeZone::system()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn told(explanation: &Explanation, zone: &TimeZone) -> String {
    let sentences = explanation.sentences.join("\n");
    let chapters =
        explanation.story.iter().map(|chapter| format!("  {}  {chapter}\n", clock(chapter.at, zone)));
    format!("{sentences}\n\nWhat happened:\n{}", chapters.collect::<String>())
}
