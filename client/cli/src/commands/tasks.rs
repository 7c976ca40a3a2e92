//! `tasks`: lists the tasks of an application and the processes that run them, as its coordinator tells.

use std::process::ExitCode;

use cohabit_client::types::JobId;
use cohabit_console::{CommandError, Screen, output, with_schema};

use super::applications::{find_application, silent_jobs};
use crate::arguments::{ApplicationArguments, OutputFormat};
use crate::endpoint::connect;
use crate::render::application_documents::TaskListDocument;
use crate::render::tasks_table::tasks_table;

pub(super) async fn tasks(arguments: ApplicationArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let application = find_application(&client, &arguments.application).await?;
    let listing = client.tasks(application.job).await?;
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
