//! `predict show`: what a trained model is.

use super::{input, sheet};
use crate::arguments::{OutputFormat, PredictShowArguments};
use crate::failure::CommandError;
use crate::output;

pub(super) fn show(arguments: &PredictShowArguments) -> Result<(), CommandError> {
    let card = input::model(&arguments.weights)?.card;
    match arguments.display.output {
        OutputFormat::Json => output::document(&card.without_metadata()),
        OutputFormat::Table | OutputFormat::Wide => output::data(&sheet::card(&card)),
        OutputFormat::Quiet => output::data(&card.model),
    }
}
