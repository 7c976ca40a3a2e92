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
mod export;
mod files;
mod fitting_table;
mod input;
mod interference;
#[cfg(feature = "online")]
mod learning;
mod left_out;
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
mod survey;
#[cfg(test)]
mod tests;
mod unused_flags;

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
#[cfg(feature = "predict")]
pub(crate) use self::unused_flags::{FlagContext, check_workload, explain_unused};
use crate::output_file::OutputFile;
use cohabit_console::{CommandError, OutputFormat, Screen, output};

/// Simulates what the arguments ask for and prints the results.
///
/// # Errors
///
/// Flags without an effect, an unusable trace, table or model, and files that cannot be written.
pub fn run(arguments: &SimulateArguments) -> Result<ExitCode, CommandError> {
    arguments.check_agents()?;
    arguments.baseline_index()?;
    unused_flags::check(arguments)?;
    let files = ResultFiles::prepare(arguments)?;
    let input = Input::read(&arguments.workload)?;
    input.remarks().iter().for_each(|remark| output::print_message(remark));
    let samples = arguments.samples();
    let survey = survey::survey(arguments, &input, &samples)?;
    if arguments.incentive && !survey.needs.shares {
        return Err(CommandError::invalid(
            "--incentive needs jobs that share GPUs: add --interference table:FILE or --configurations FILE",
        ));
    }
    let devices = arguments.workload.cluster.spec.devices();
    unused_flags::warnings(arguments, &survey, devices).iter().for_each(|it| output::print_message(it));
    let outcomes = runner::run_all(arguments, &input, &samples, &survey)?;
    unused_flags::unused_stops(arguments, &outcomes).iter().for_each(|it| output::print_message(it));
    // Print first: results that took minutes must not be lost if a file cannot be written after all.
    print_result(&outcomes, arguments.display.output)?;
    files.write(&outcomes)?;
    Ok(ExitCode::SUCCESS)
}

/// The files that a command writes besides its output.
struct ResultFiles {
    report: Option<OutputFile>,
    jobs: Option<OutputFile>,
    users: Option<OutputFile>,
}

impl ResultFiles {
    /// Checks that they can be written, before runs that may take minutes.
    fn prepare(arguments: &SimulateArguments) -> Result<ResultFiles, CommandError> {
        let files = ResultFiles {
            report: OutputFile::prepare_if_any("--report", arguments.report.as_ref())?,
            jobs: OutputFile::prepare_if_any("--jobs-csv", arguments.jobs_csv.as_ref())?,
            users: OutputFile::prepare_if_any("--users-csv", arguments.users_csv.as_ref())?,
        };
        let all: Vec<&OutputFile> =
            [&files.report, &files.jobs, &files.users].into_iter().flatten().collect();
        OutputFile::check_distinct(&all)?;
        Ok(files)
    }

    fn write(&self, outcomes: &SimulationResults) -> Result<(), CommandError> {
        if let Some(file) = &self.jobs {
            file.write(|to| export::write_jobs(outcomes, to))?;
        }
        if let Some(file) = &self.users {
            file.write(|to| export::write_users(outcomes, to))?;
        }
        let Some(file) = &self.report else { return Ok(()) };
        let page = report::page(outcomes)?;
        file.write(|to| to.write_all(page.as_bytes()))
    }
}

fn print_result(outcomes: &SimulationResults, format: OutputFormat) -> Result<(), CommandError> {
    match format {
        OutputFormat::Table => output::print_text(&summary::by_policy(outcomes, Screen::of_stdout())),
        OutputFormat::Wide => output::print_text(&summary::by_run(outcomes, Screen::of_stdout())),
        OutputFormat::Json => output::print_document(&document::document(outcomes)),
        OutputFormat::Quiet => summary::lines(outcomes).iter().try_for_each(|line| output::print_text(line)),
    }
}
