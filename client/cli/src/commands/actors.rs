//! `actors`: lists the actors of an application, as its coordinator tells, with what the head knows of their
//! jobs.

use std::process::ExitCode;

use cohabit_client::types::JobId;
use cohabit_console::{CommandError, Screen, output, with_schema};

use super::applications::{find_application, silent_jobs};
use crate::arguments::{ApplicationArguments, OutputFormat};
use crate::endpoint::connect;
use crate::render::actors_table::actors_table;
use crate::render::application_documents::ActorListDocument;

pub(super) async fn actors(arguments: ApplicationArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let application = find_application(&client, &arguments.application).await?;
    let listing = client.actors(application.job).await?;
    let jobs = listing.actors.iter().filter_map(|actor| actor.job);
    let jobs: Vec<JobId> = jobs.chain(silent_jobs(&listing.silent)).collect();
    let records = client.show(&jobs).await?;
    match arguments.display.output {
        OutputFormat::Table | OutputFormat::Wide => {
            let nodes = client.nodes().await?;
            output::print_text(&actors_table(&listing, &records, &nodes, Screen::of_stdout()))?
        }
        OutputFormat::Json => {
            output::print_document(&with_schema(ActorListDocument::new(application.job, &listing, &records)))?
        }
        OutputFormat::Quiet => {
            listing.actors.iter().try_for_each(|actor| output::print_text(&actor.id.to_string()))?
        }
    }
    Ok(ExitCode::SUCCESS)
}
