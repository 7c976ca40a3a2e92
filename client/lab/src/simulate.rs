//! `simulate`: replays a trace on a simulated cluster and compares scheduling policies.
//!
//! The simulator runs the jobs through the production state machine of the head and the production policies.
//! For a given seed, every policy gets the same jobs, training configurations and estimation errors. This
//! command reads the input, shows the progress and prints the results. Start reading at [`run`].

mod arguments;
mod document;
mod files;
mod input;
mod interference;
mod progress;
mod report;
mod result;
#[cfg(test)]
mod samples;
mod statistics;
mod summary;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use cohabit_console::{CommandError, CommandErrorKind, OutputFormat, Screen, output};
use cohabit_sim::workload::WorkloadJob;
use cohabit_sim::{Evaluation, evaluate};
use cohabit_types::Sharing;

use self::arguments::PolicyVariant;
pub use self::arguments::SimulateArguments;
use self::input::{Input, SeededWorkload};
use self::progress::SimulationProgress;
use self::result::{SimulationResult, SimulationResults};

/// Simulates what the arguments ask for and prints the results.
///
/// # Errors
///
/// An unusable trace, table or model, and a report that cannot be written.
pub fn run(arguments: &SimulateArguments) -> Result<ExitCode, CommandError> {
    let input = Input::read(arguments)?;
    input.remarks().iter().for_each(|remark| output::print_message(remark));
    let outcomes = run_all(arguments, &input)?;
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

/// Runs every policy with every seed, one after the other, so that planning times are not disturbed.
fn run_all(arguments: &SimulateArguments, input: &Input) -> Result<SimulationResults, CommandError> {
    let (policy_variants, seeds) = (arguments.policy_variants(), arguments.seeds());
    let mut progress = SimulationProgress::new(policy_variants.len() * seeds.len());
    let mut outcomes = SimulationResults::of(arguments);
    for seed in seeds {
        let jobs = input.jobs(seed)?;
        outcomes.record_left_out(&jobs);
        for (index, variant) in policy_variants.iter().enumerate() {
            let evaluation = evaluation(*variant, seed, arguments, input, &jobs);
            progress.begin(&variant.to_string(), seed, evaluation.jobs.len());
            let mut evaluated = evaluate(evaluation, &mut progress)
                .map_err(|error| CommandError::from_error(CommandErrorKind::Internal, &error))?;
            evaluated.metrics.policy = variant.to_string();
            outcomes.runs.push(SimulationResult { variant: index, seed, load: jobs.load, evaluated });
        }
    }
    progress.end();
    Ok(outcomes)
}

fn evaluation(
    variant: PolicyVariant<'_>,
    seed: u64,
    arguments: &SimulateArguments,
    input: &Input,
    jobs: &SeededWorkload,
) -> Evaluation {
    Evaluation {
        shapes: jobs.shapes.clone(),
        hardware: input.hardware.clone(),
        jobs: jobs.workload.jobs.iter().cloned().map(|job| under(variant.sharing, job)).collect(),
        policy: variant.policy.to_owned(),
        knowledge: input.knowledge.clone(),
        estimator: arguments.estimator.0,
        behavior: arguments.behavior.behavior(),
        seed,
    }
}

fn under(sharing: Sharing, job: WorkloadJob) -> WorkloadJob {
    match sharing {
        Sharing::Exclusive => job.exclusive(),
        Sharing::Shared => job,
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
