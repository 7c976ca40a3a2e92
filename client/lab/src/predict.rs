//! `predict`: trains, evaluates and shows models that predict the slowdown of jobs sharing a GPU.

mod arguments;
mod document;
mod eval;
mod input;
mod progress;
mod report;
mod show;
mod text;
mod train;

use std::process::ExitCode;

use cohabit_console::CommandError;

pub use self::arguments::PredictArguments;
use self::arguments::PredictVerb;

/// Trains, evaluates or shows a model.
///
/// # Errors
///
/// Unusable measurements or models, and files that cannot be read or written.
pub fn run(arguments: &PredictArguments) -> Result<ExitCode, CommandError> {
    match &arguments.verb {
        PredictVerb::Train(arguments) => train::train(arguments)?,
        PredictVerb::Eval(arguments) => eval::eval(arguments)?,
        PredictVerb::Show(arguments) => show::show(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
