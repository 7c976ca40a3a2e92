//! `policy`: trains the agents of the policy maifs in the simulator.
//!
//! Start reading at `train.rs`. `episodes.rs` draws the jobs of an episode, `training_agents.rs` stands
//! between the policy and the learner, and `validation.rs` measures what has been learned.

mod arguments;
mod card;
mod episodes;
#[cfg(test)]
mod tests;
mod train;
mod training_agents;
mod validation;

use std::process::ExitCode;

use cohabit_console::CommandError;

pub use self::arguments::PolicyArguments;
use self::arguments::PolicyVerb;
pub(crate) use self::card::load_agents;

/// Trains agents.
///
/// # Errors
///
/// An unusable trace or table, and files that cannot be read or written.
pub fn run(arguments: &PolicyArguments) -> Result<ExitCode, CommandError> {
    match &arguments.verb {
        PolicyVerb::Train(arguments) => train::train(arguments)?,
        PolicyVerb::Show(arguments) => card::show(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
