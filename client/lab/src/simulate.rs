//! `simulate`: replays a trace on a simulated cluster and compares scheduling policies.
//!
//! The simulator runs the jobs through the production state machine of the head and the production policies.
//! For a given seed, every policy gets the same jobs, training configurations and estimation errors. This
//! command reads the input, shows the progress and prints the results. Start reading at [`run`].

#[cfg(feature = "predict")]
mod agents;
mod arguments;
mod comparison;
mod document;
mod files;
mod input;
mod interference;
#[cfg(feature = "online")]
mod learning;
#[cfg(not(feature = "predict"))]
mod no_agents;
#[cfg(not(feature = "online"))]
mod no_learning;
mod progress;
mod report;
mod result;
mod runner;
#[cfg(test)]
mod samples;
mod sensitivity;
mod statistics;
mod summary;
#[cfg(test)]
mod tests;

#[cfg(not(feature = "predict"))]
use no_agents as agents;
#[cfg(not(feature = "online"))]
use no_learning as learning;

use std::process::ExitCode;

pub use self::arguments::SimulateArguments;
#[cfg(feature = "predict")]
pub(crate) use self::arguments::{WorkloadArguments, parse_load};
pub(crate) use self::input::Input;
#[cfg(feature = "predict")]
pub(crate) use self::input::WindowDraw;
use self::result::SimulationResults;
use cohabit_console::{CommandError, CommandErrorKind, OutputFormat, Screen, output};

/// Simulates what the arguments ask for and prints the results.
///
/// # Errors
///
/// An unusable trace, table or model, and a report that cannot be written.
pub fn run(arguments: &SimulateArguments) -> Result<ExitCode, CommandError> {
    arguments.check_agents()?;
    let input = Input::read(&arguments.workload)?;
    input.remarks().iter().for_each(|remark| output::print_message(remark));
    let outcomes = runner::run_all(arguments, &input)?;
    // Print first: results that took minutes must not be lost if the page cannot be written.
    print_result(&outcomes, arguments.display.output)?;
    if let Some(path) = &arguments.report {
        let page = report::page(&outcomes)?;
        std::fs::write(path, page).map_err(|error| {
            CommandError::new(
                CommandErrorKind::InputOutput,
                format!("cannot write the report to {}: {error}", path.display()),
            )
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_result(outcomes: &SimulationResults, format: OutputFormat) -> Result<(), CommandError> {
    match format {
        OutputFormat::Table => output::print_text(&summary::by_policy(outcomes, Screen::of_stdout())),
        OutputFormat::Wide => output::print_text(&summary::by_run(outcomes, Screen::of_stdout())),
        OutputFormat::Json => output::print_document(&document::document(outcomes)),
        OutputFormat::Quiet => summary::lines(outcomes).iter().try_for_each(|line| output::print_text(line)),
    }
}
