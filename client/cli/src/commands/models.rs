//! `models`: the models of interference that the head has learned, and the choice among them.

use std::process::ExitCode;

use jiff::tz::TimeZone;

use crate::arguments::{Format, ModelsArguments};
use crate::connect::connect;
use crate::failure::Failure;
use crate::output::{self, Screen};
use crate::render::documents::versioned;
use crate::render::models::{ModelsTold, current, models_sheet};

pub(super) async fn models(arguments: ModelsArguments) -> Result<ExitCode, Failure> {
    let models = connect(arguments.connection()).await?.models(arguments.request()).await?;
    match arguments.display().output {
        Format::Table | Format::Wide => {
            output::data(&models_sheet(&models, &TimeZone::system(), Screen::of_stdout()))?
        }
        Format::Json => output::document(&versioned(ModelsTold::from(&models)))?,
        Format::Quiet => output::data(&current(&models))?,
    }
    Ok(ExitCode::SUCCESS)
}
