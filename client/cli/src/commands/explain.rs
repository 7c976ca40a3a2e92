//! `explain`: explains in sentences why a job is waiting or how it ended, and prints its history. Of an
//! application it also says which parts wait, and for what; of a job that has failed, what it printed last to
//! standard error.

use std::process::ExitCode;

use cohabit_client::Explanation;
use cohabit_client::types::JobEvent;
use cohabit_console::{CommandError, output, printable_line, with_schema};
use cohabit_documents::explanation::ExplanationDocument;
use jiff::tz::TimeZone;

use super::application_waits::{describe_waits, waits_of};
use super::applications::{ended_application, look_for_application};
use super::error_output::error_output;
use super::job_reference::resolve_one;
use crate::arguments::{ExplainArguments, OutputFormat};
use crate::endpoint::connect;
use crate::render::explanation_document::ExplainedJobDocument;
use crate::render::local_time;

pub(super) async fn explain(arguments: ExplainArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let application = look_for_application(&client, &arguments.job).await?.ok();
    if application.is_none()
        && let Some(error) = ended_application(&client, &arguments.job, "explain").await?
    {
        return Err(error);
    }
    let job = match &application {
        Some(application) => application.job,
        None => resolve_one(&client, &arguments.job).await?,
    };
    let explanation = client.explain(job).await?;
    let waits = match &application {
        Some(application) => Some(waits_of(&client, application).await?),
        None => None,
    };
    let stderr = error_output(&client, job).await;
    let waiting = waits.as_ref().map_or(String::new(), describe_waits);
    let printed = stderr.as_ref().map_or(String::new(), |it| it.describe(&job.to_string()));
    match arguments.display.output {
        OutputFormat::Json => {
            let explanation = ExplanationDocument::new(job, explanation);
            output::print_document(&with_schema(ExplainedJobDocument {
                explanation,
                waiting: waits,
                stderr,
            }))?
        }
        OutputFormat::Quiet => output::print_text(&(sentences(&explanation) + &waiting))?,
        OutputFormat::Table | OutputFormat::Wide => {
            let details = waiting + &printed;
            output::print_text(&describe_explanation(&explanation, &details, &TimeZone::system()))?
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `details` stand between the sentences and the history.
fn describe_explanation(explanation: &Explanation, details: &str, zone: &TimeZone) -> String {
    let line = |event: &JobEvent| {
        format!("  {}  {}\n", local_time(event.at, zone), printable_line(&event.to_string()))
    };
    let history = explanation.history.iter().map(line).collect::<String>();
    format!("{}{details}\nHistory:\n{history}", sentences(explanation))
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
        let text = describe_explanation(&explanation("Job 1 is running."), "", &TimeZone::UTC);
        assert!(
            text.starts_with("Job 1 is running.\nIt runs.\n\nHistory:\n  2026-11-21 08:33:20  "),
            "{text}"
        );
    }

    #[test]
    fn an_explanation_shows_codes_of_characters_that_are_not_visible() {
        assert_printable(|text| describe_explanation(&explanation(text), "", &TimeZone::UTC));
        assert_printable(|text| sentences(&explanation(text)));
    }

    #[test]
    fn parts_of_an_application_that_wait_come_after_the_sentences() {
        let text = describe_explanation(&explanation("Job 3 is running."), "Job 7 waits.\n", &TimeZone::UTC);
        assert!(text.starts_with("Job 3 is running.\nIt runs.\nJob 7 waits.\n\nHistory:\n"), "{text}");
    }
}
