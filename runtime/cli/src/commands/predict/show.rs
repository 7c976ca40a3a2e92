//! `predict show`: what a trained model is.

use cohabit_predict::interference::Card;

use super::{input, sheet};
use crate::arguments::{Format, PredictShowArguments};
use crate::failure::Failure;
use crate::output;

pub(super) fn show(arguments: &PredictShowArguments) -> Result<(), Failure> {
    let card = Card::load(&arguments.weights).map_err(|error| input::unusable(&error))?;
    match arguments.display.output {
        Format::Json => output::document(&card.told()),
        Format::Table | Format::Wide => output::data(&sheet::card(&card)),
        Format::Quiet => output::data(&card.model),
    }
}
