//! `predict show`: shows the description of a trained model.

use cohabit_console::{CommandError, OutputFormat, output};

use super::text;
use crate::model_directory::load_model;
use crate::predict::arguments::PredictShowArguments;

pub(super) fn show(arguments: &PredictShowArguments) -> Result<(), CommandError> {
    let card = load_model(&arguments.weights)?.card;
    match arguments.display.output {
        OutputFormat::Json => output::print_document(&card.without_metadata()),
        OutputFormat::Table | OutputFormat::Wide => output::print_text(&text::card(&card)),
        OutputFormat::Quiet => output::print_text(&card.model),
    }
}
