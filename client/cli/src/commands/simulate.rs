//! `simulate`: a trace on a made-up cluster, under one policy after the other, on identical arrivals.
//!
//! The jobs run through the production head and policies in the simulator; this command reads what it needs,
//! watches, and tells. For a seed, every policy gets the same jobs, trainings and errors of estimates.

mod bar;
mod document;
mod figures;
mod input;
mod judge;
mod report;
mod result;
#[cfg(test)]
mod samples;
mod summary;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use cohabit_sim::workload::WorkloadJob;
use cohabit_sim::{Evaluation, evaluate};

use self::bar::SimulationProgress;
use self::input::{Input, SeededWorkload};
use self::result::{SimulationResult, SimulationResults};
use crate::arguments::{OutputFormat, PolicyVariant, SimulateArguments, Tenancy};
use crate::failure::{CommandError, CommandErrorKind};
use crate::output::{self, Screen};

pub(super) fn simulate(arguments: &SimulateArguments) -> Result<ExitCode, CommandError> {
    let input = Input::read(arguments)?;
    input.remarks().iter().for_each(|remark| output::message(remark));
    let outcomes = run_all(arguments, &input)?;
    // What took minutes must not be lost with a page that cannot be written.
    tell(&outcomes, arguments.display.output)?;
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

/// Every policy with every seed, one after the other: their times would disturb each other.
fn run_all(arguments: &SimulateArguments, input: &Input) -> Result<SimulationResults, CommandError> {
    let (policy_variants, seeds) = (arguments.policy_variants(), arguments.seeds());
    let mut bar = SimulationProgress::new(policy_variants.len() * seeds.len());
    let mut outcomes = SimulationResults::of(arguments);
    for seed in seeds {
        let jobs = input.jobs(seed)?;
        outcomes.record_left_out(&jobs);
        for variant in &policy_variants {
            let evaluation = evaluation(*variant, seed, arguments, input, &jobs);
            outcomes.runs.push(run(*variant, evaluation, jobs.load, &mut bar)?);
        }
    }
    bar.end();
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
        jobs: jobs.workload.jobs.iter().cloned().map(|job| under(variant.tenancy, job)).collect(),
        policy: variant.policy.to_owned(),
        knowledge: input.knowledge.clone(),
        estimator: arguments.estimator.0,
        seed,
    }
}

fn under(tenancy: Tenancy, job: WorkloadJob) -> WorkloadJob {
    match tenancy {
        Tenancy::Exclusive => job.exclusive(),
        Tenancy::Shared => job,
    }
}

fn run(
    variant: PolicyVariant<'_>,
    evaluation: Evaluation,
    load: Option<f64>,
    bar: &mut SimulationProgress,
) -> Result<SimulationResult, CommandError> {
    let seed = evaluation.seed;
    bar.begin(&variant.to_string(), seed, evaluation.jobs.len());
    let mut evaluated = evaluate(evaluation, bar)
        .map_err(|error| CommandError::from_error(CommandErrorKind::Internal, &error))?;
    evaluated.metrics.policy = variant.to_string();
    Ok(SimulationResult { seed, load, evaluated })
}

fn tell(outcomes: &SimulationResults, format: OutputFormat) -> Result<(), CommandError> {
    match format {
        OutputFormat::Table => output::data(&summary::by_policy(outcomes, Screen::of_stdout())),
        OutputFormat::Wide => output::data(&summary::by_run(outcomes, Screen::of_stdout())),
        OutputFormat::Json => output::document(&document::document(outcomes)),
        OutputFormat::Quiet => summary::lines(outcomes).iter().try_for_each(|line| output::data(line)),
    }
}
