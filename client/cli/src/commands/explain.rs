//! `explain`: explains in sentences why a job is waiting or how it ended, and prints its history.

use std::process::ExitCode;

use cohabit_client::Explanation;
use cohabit_client::types::JobEvent;
use cohabit_console::{CommandError, output, printable_line, with_schema};
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
        OutputFormat::Quiet => output::print_text(&sentences(&explanation))?,
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&describe_explanation(&explanation, &TimeZone::system()))?
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn describe_explanation(explanation: &Explanation, zone: &TimeZone) -> String {
    let line = |event: &JobEvent| {
        format!("  {}  {}\n", local_time(event.at, zone), printable_line(&event.to_string()))
    };
    let history = explanation.history.iter().map(line).collect::<String>();
    format!("{}\nHistory:\n{history}", sentences(explanation))
}

/// One line for each sentence.
fn sentences(explanation: &Explanation) -> String {
    explanation.sentences.iter().map(|it| printable_line(it).into_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::{Cause, JobEventKind};

    use super::*;
    use crate::render::hostile_text::assert_printable;
    use crate::render::samples::at;

    fn explanation(text: &str) -> Explanation {
        let (cause, kind) = (Cause::User(text.to_owned()), JobEventKind::Submitted);
        let history = vec![JobEvent { at: at(0), cause, kind }];
        Explanation { sentences: vec![text.to_owned(), "It runs.".to_owned()], history }
    }

    #[test]
    fn sentences_come_before_the_history() {
        let text = describe_explanation(&explanation("Job 1 is running."), &TimeZone::UTC);
        assert!(
            text.starts_with("Job 1 is running.\nIt runs.\n\nHistory:\n  2026-11-21 08:33:20  "),
            "{text}"
        );
    }

    #[test]
    fn an_explanation_shows_codes_of_characters_that_are_not_visible() {
        assert_printable(|text| describe_explanation(&explanation(text), &TimeZone::UTC));
        assert_printable(|text| sentences(&explanation(text)));
    }
}
