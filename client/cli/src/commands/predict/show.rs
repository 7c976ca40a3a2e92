//! `predict show`: what a trained model is.

use super::{input, sheet};
use crate::arguments::{Format, PredictShowArguments};
use crate::failure::Failure;
use crate::output;

pub(super) fn show(arguments: &PredictShowArguments) -> Result<(), Failure> {
    let card = input::model(&arguments.weights)?.card;
    match arguments.display.output {
        Format::Json => output::document(&card.told()),
        Format::Table | Format::Wide => output::data(&sheet::card(&card)),
        Format::Quiet => output::data(&card.model),
    }
}
