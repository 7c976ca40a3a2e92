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

use self::bar::Bar;
use self::input::{Input, Jobs};
use self::result::{Outcome, Outcomes};
use crate::arguments::{Entrant, Format, SimulateArguments, Tenancy};
use crate::failure::{Failure, Trouble};
use crate::output::{self, Screen};

pub(super) fn simulate(arguments: &SimulateArguments) -> Result<ExitCode, Failure> {
    let input = Input::read(arguments)?;
    input.remarks().iter().for_each(|remark| output::message(remark));
    let outcomes = run_all(arguments, &input)?;
    // What took minutes must not be lost with a page that cannot be written.
    tell(&outcomes, arguments.display.output)?;
    if let Some(path) = &arguments.report {
        let page = report::page(&outcomes)?;
        std::fs::write(path, page).map_err(|error| {
            Failure::new(
                Trouble::InputOutput,
                format!("cannot write the report to {}: {error}", path.display()),
            )
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Every policy with every seed, one after the other: their times would disturb each other.
fn run_all(arguments: &SimulateArguments, input: &Input) -> Result<Outcomes, Failure> {
    let (entrants, seeds) = (arguments.entrants(), arguments.seeds());
    let mut bar = Bar::new(entrants.len() * seeds.len());
    let mut outcomes = Outcomes::of(arguments);
    for seed in seeds {
        let jobs = input.jobs(seed)?;
        outcomes.took(&jobs);
        for entrant in &entrants {
            let evaluation = evaluation(*entrant, seed, arguments, input, &jobs);
            outcomes.runs.push(run(*entrant, evaluation, jobs.load, &mut bar)?);
        }
    }
    bar.end();
    Ok(outcomes)
}

fn evaluation(
    entrant: Entrant<'_>,
    seed: u64,
    arguments: &SimulateArguments,
    input: &Input,
    jobs: &Jobs,
) -> Evaluation {
    Evaluation {
        shapes: jobs.shapes.clone(),
        hardware: input.hardware.clone(),
        jobs: jobs.workload.jobs.iter().cloned().map(|job| under(entrant.tenancy, job)).collect(),
        policy: entrant.policy.to_owned(),
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
    entrant: Entrant<'_>,
    evaluation: Evaluation,
    load: Option<f64>,
    bar: &mut Bar,
) -> Result<Outcome, Failure> {
    let seed = evaluation.seed;
    bar.begin(&entrant.to_string(), seed, evaluation.jobs.len());
    let mut evaluated =
        evaluate(evaluation, bar).map_err(|error| Failure::from_error(Trouble::Internal, &error))?;
    evaluated.metrics.policy = entrant.to_string();
    Ok(Outcome { seed, load, evaluated })
}

fn tell(outcomes: &Outcomes, format: Format) -> Result<(), Failure> {
    match format {
        Format::Table => output::data(&summary::by_policy(outcomes, Screen::of_stdout())),
        Format::Wide => output::data(&summary::by_run(outcomes, Screen::of_stdout())),
        Format::Json => output::document(&document::document(outcomes)),
        Format::Quiet => summary::lines(outcomes).iter().try_for_each(|line| output::data(line)),
    }
}
