//! `tasks`: lists the tasks of an application and the processes that run them, as its coordinator tells.

use std::process::ExitCode;

use cohabit_client::types::{JobId, TaskListing};
use cohabit_console::{CommandError, Screen, output, with_schema};

use super::applications::{find_application, silent_jobs};
use crate::arguments::{OutputFormat, TasksArguments};
use crate::endpoint::connect;
use crate::render::application_documents::TaskListDocument;
use crate::render::tasks_table::tasks_table;

pub(super) async fn tasks(
    TasksArguments { application: arguments, tail }: TasksArguments,
) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let application = find_application(&client, &arguments.application).await?;
    let mut listing = client.tasks(application.job).await?;
    keep_last(&mut listing, tail);
    match arguments.display.output {
        OutputFormat::Table | OutputFormat::Wide => {
            let members = listing.tasks.iter().flat_map(|task| [Some(task.caller), task.runner]);
            let members = members.flatten().chain(listing.silent.iter().copied());
            let jobs: Vec<JobId> = members.map(|member| member.job()).collect();
            let records = client.show(&jobs).await?;
            output::print_text(&tasks_table(&listing, &records, Screen::of_stdout()))?
        }
        OutputFormat::Json => {
            let records = client.show(&silent_jobs(&listing.silent)).await?;
            let document = TaskListDocument::new(application.job, &listing, &records);
            output::print_document(&with_schema(document))?
        }
        OutputFormat::Quiet => listing
            .tasks
            .iter()
            .try_for_each(|task| output::print_text(&format!("{} {}", task.caller.job(), task.call)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Leaves out all tasks but the last ones, and counts those that are left out.
fn keep_last(listing: &mut TaskListing, tail: Option<usize>) {
    let Some(tail) = tail else { return };
    let first = listing.tasks.len().saturating_sub(tail);
    listing.tasks.drain(..first);
    listing.omitted += first as u64;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::application_samples::tasks;

    #[test]
    fn the_last_tasks_are_kept_and_the_others_counted() {
        let all = tasks();
        for (tail, kept) in
            [(None, all.tasks.len()), (Some(1), 1), (Some(0), 0), (Some(999), all.tasks.len())]
        {
            let mut listing = tasks();
            keep_last(&mut listing, tail);
            assert_eq!(listing.tasks, all.tasks[all.tasks.len() - kept..], "{tail:?}");
            assert_eq!(listing.omitted, all.omitted + (all.tasks.len() - kept) as u64);
        }
    }
}
