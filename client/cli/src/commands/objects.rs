//! `objects`: lists the objects of an application, as its coordinator tells.

use std::process::ExitCode;

use cohabit_console::{CommandError, Screen, output, with_schema};

use super::applications::{find_application, silent_jobs};
use crate::arguments::{ApplicationArguments, OutputFormat};
use crate::endpoint::connect;
use crate::render::application_documents::ObjectListDocument;
use crate::render::objects_table::objects_table;

pub(super) async fn objects(arguments: ApplicationArguments) -> Result<ExitCode, CommandError> {
    let client = connect(&arguments.connection).await?;
    let application = find_application(&client, &arguments.application).await?;
    let listing = client.objects(application.job).await?;
    let records = client.show(&silent_jobs(&listing.silent)).await?;
    match arguments.display.output {
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&objects_table(&listing, &records, Screen::of_stdout()))?
        }
        OutputFormat::Json => {
            let document = ObjectListDocument::new(application.job, &listing, &records);
            output::print_document(&with_schema(document))?
        }
        OutputFormat::Quiet => {
            listing.objects.iter().try_for_each(|object| output::print_text(&object.id))?
        }
    }
    Ok(ExitCode::SUCCESS)
}
