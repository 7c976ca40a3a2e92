//! `models`: the models of interference that the head has learned, and the choice among them.

use std::process::ExitCode;

use jiff::tz::TimeZone;

use crate::arguments::{ModelsArguments, OutputFormat};
use crate::connect::connect;
use crate::failure::CommandError;
use crate::output::{self, Screen};
use crate::render::documents::with_schema;
use crate::render::models::{ModelsDocument, current, models_sheet};

pub(super) async fn models(arguments: ModelsArguments) -> Result<ExitCode, CommandError> {
    let client = connect(arguments.connection()).await?;
    let models = match arguments.choice() {
        Some(choice) => client.choose_model(choice).await?,
        None => client.models().await?,
    };
    match arguments.display().output {
        OutputFormat::Table | OutputFormat::Wide => {
            output::data(&models_sheet(&models, &TimeZone::system(), Screen::of_stdout()))?
        }
        OutputFormat::Json => output::document(&with_schema(ModelsDocument::from(&models)))?,
        OutputFormat::Quiet => output::data(&current(&models))?,
    }
    Ok(ExitCode::SUCCESS)
}
