//! `explain`: explains in sentences why a job is waiting or how it ended, and prints its history. Of an
//! application it also says which parts wait, and for what.

use std::process::ExitCode;

use cohabit_client::types::{ActorRecord, ActorStage, ApplicationRecord, JobEvent, JobPhase};
use cohabit_client::{Client, Explanation};
use cohabit_console::{CommandError, output, printable_line, with_schema};
use jiff::tz::TimeZone;

use super::applications::look_for_application;
use super::job_reference::resolve_one;
use crate::arguments::{ExplainArguments, OutputFormat};
use crate::endpoint::connect;
use crate::render::documents::{
    ExplanationDocument, WaitingActorDocument, WaitingJobDocument, WaitsDocument,
};
use crate::render::local_time;

pub(super) async fn explain(arguments: ExplainArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let application = look_for_application(&client, &arguments.job).await?.ok();
    let job = match &application {
        Some(application) => application.job,
        None => resolve_one(&client, &arguments.job).await?,
    };
    let explanation = client.explain(job).await?;
    let waits = match &application {
        Some(application) => Some(waits_of(&client, application).await?),
        None => None,
    };
    let waiting = waits.as_ref().map_or(String::new(), describe_waits);
    match arguments.display.output {
        OutputFormat::Json => {
            output::print_document(&with_schema(ExplanationDocument::new(job, explanation, waits)))?
        }
        OutputFormat::Quiet => output::print_text(&(sentences(&explanation) + &waiting))?,
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&describe_explanation(&explanation, &waiting, &TimeZone::system()))?
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What waits of an application: child jobs, and actors that have no job yet.
async fn waits_of(client: &Client, application: &ApplicationRecord) -> Result<WaitsDocument, CommandError> {
    let records = client.show(&application.runners).await?;
    let waiting = records.into_iter().filter(|record| record.state.phase() == JobPhase::Waiting);
    let jobs = waiting.map(|it| WaitingJobDocument { id: it.id, name: it.name, reason: it.reason }).collect();
    let asked = match application.attempt {
        Some(_) => Some(client.actors(application.job).await),
        None => None,
    };
    let document = |actor: ActorRecord| WaitingActorDocument {
        id: actor.id,
        name: actor.name.unwrap_or(actor.kind),
        reason: actor.why,
    };
    let (actors, problem) = match asked {
        None => (Vec::new(), None),
        Some(Ok(listing)) => {
            let queued = listing.actors.into_iter().filter(|actor| actor.state == ActorStage::Queued);
            (queued.map(document).collect(), None)
        }
        // Everything else is known without it.
        Some(Err(error)) => (Vec::new(), Some(error.to_string())),
    };
    Ok(WaitsDocument { jobs, actors, problem })
}

/// A line for each.
fn describe_waits(waits: &WaitsDocument) -> String {
    let jobs = waits.jobs.iter().map(|it| format!("Job {} ({}) waits: {}", it.id, it.name, it.reason));
    let actors = waits.actors.iter().map(|it| format!("Actor {} ({}) waits: {}", it.id, it.name, it.reason));
    let problem = waits.problem.iter().map(|it| format!("Whether actors wait for max_gpus is unknown: {it}"));
    jobs.chain(actors).chain(problem).map(|line| printable_line(&line).into_owned() + "\n").collect()
}

fn describe_explanation(explanation: &Explanation, waiting: &str, zone: &TimeZone) -> String {
    let line = |event: &JobEvent| {
        format!("  {}  {}\n", local_time(event.at, zone), printable_line(&event.to_string()))
    };
    let history = explanation.history.iter().map(line).collect::<String>();
    format!("{}{waiting}\nHistory:\n{history}", sentences(explanation))
}

/// One line for each sentence.
fn sentences(explanation: &Explanation) -> String {
    explanation.sentences.iter().map(|it| printable_line(it).into_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::{Cause, JobEventKind, JobId};

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
        assert_printable(|text| describe_waits(&waits(text)));
    }

    fn waits(text: &str) -> WaitsDocument {
        let (name, reason) = (text.to_owned(), text.to_owned());
        WaitsDocument {
            jobs: vec![WaitingJobDocument { id: JobId::new(7), name: name.clone(), reason: reason.clone() }],
            actors: vec![WaitingActorDocument { id: 2, name, reason }],
            problem: Some(text.to_owned()),
        }
    }

    #[test]
    fn parts_of_an_application_that_wait_come_after_the_sentences() {
        let waiting = describe_waits(&waits("x"));
        let lines =
            "Job 7 (x) waits: x\nActor 2 (x) waits: x\nWhether actors wait for max_gpus is unknown: x\n";
        assert_eq!(waiting, lines);
        let text = describe_explanation(&explanation("Job 3 is running."), &waiting, &TimeZone::UTC);
        assert!(text.starts_with(&format!("Job 3 is running.\nIt runs.\n{lines}\nHistory:\n")), "{text}");
    }
}
