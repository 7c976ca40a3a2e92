//! `predict`: models of interference, trained on measurements, asked about them, and shown.

mod bar;
mod document;
mod eval;
mod input;
mod report;
mod sheet;
mod show;
mod train;

use std::process::ExitCode;

#[cfg(feature = "simulate")]
pub(super) use self::input::model;

use crate::arguments::PredictVerb;
use crate::failure::CommandError;

pub(super) fn predict(verb: &PredictVerb) -> Result<ExitCode, CommandError> {
    match verb {
        PredictVerb::Train(arguments) => train::train(arguments)?,
        PredictVerb::Eval(arguments) => eval::eval(arguments)?,
        PredictVerb::Show(arguments) => show::show(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
