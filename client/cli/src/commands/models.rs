//! `models`: lists the models of slowdowns that the head has learned, or chooses one.

use std::process::ExitCode;

use cohabit_console::{CommandError, Screen, output, with_schema};
use jiff::tz::TimeZone;

use crate::arguments::{ModelsArguments, OutputFormat};
use crate::endpoint::connect;
use crate::render::model_documents::ModelsDocument;
use crate::render::models_table::{current, models_sheet};

pub(super) async fn models(arguments: ModelsArguments) -> Result<ExitCode, CommandError> {
    let client = connect(arguments.connection()).await?;
    let models = match arguments.choice() {
        Some(choice) => client.choose_model(choice).await?,
        None => client.models().await?,
    };
    match arguments.display().output {
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_text(&models_sheet(&models, &TimeZone::system(), Screen::of_stdout()))?
        }
        OutputFormat::Json => output::print_document(&with_schema(ModelsDocument::from(&models)))?,
        OutputFormat::Quiet => output::print_text(&current(&models))?,
    }
    Ok(ExitCode::SUCCESS)
}
