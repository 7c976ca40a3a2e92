//! Runs every policy on every sample of jobs, several at the same time.
//!
//! A run depends on its own input alone, and results are kept in the order of the runs, so they do not
//! depend on the number of threads. Start reading at [`run_all`].

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;

use cohabit_console::{CommandError, CommandErrorKind};
use cohabit_sim::maifs::Agents;
use cohabit_sim::workload::WorkloadJob;
use cohabit_sim::{
    Evaluation, EvaluationResult, SharingIncentive, evaluate, evaluate_agents, uses_interference,
};
use cohabit_types::{Sharing, Span, Time};

use super::agents::LoadedAgents;
use super::arguments::{FairShare, PolicyVariant, Sample, SimulateArguments};
use super::input::{Input, SeededWorkload};
use super::learning::OnlineLearning;
use super::progress::SimulationProgress;
use super::result::{SimulationResult, SimulationResults};
use super::survey::{WorkloadSurvey, jobs_of};

/// By how much every second job is later, at most, in a run that tells what differs by chance.
const NUDGE: Span = Span::from_secs(1);

/// Runs what the arguments ask for.
pub(super) fn run_all(
    arguments: &SimulateArguments,
    input: &Input,
    samples: &[Sample],
    survey: &WorkloadSurvey,
) -> Result<SimulationResults, CommandError> {
    let mut outcomes = SimulationResults::of(arguments)?;
    outcomes.left_out = survey.left_out;
    let reported = arguments.policy_variants();
    let variants = with_shadows(&reported, arguments.incentive);
    let runner = Runner::new(arguments, input, samples, &variants)?;
    let mut finished = runner.run(threads(arguments))?.into_iter();
    for (sample, surveyed) in samples.iter().zip(&survey.samples) {
        let runs: Vec<FinishedRun> = finished.by_ref().take(variants.len()).collect();
        let incentives: Vec<Option<SharingIncentive>> = reported
            .iter()
            .zip(&runs)
            .map(|(variant, run)| arguments.incentive.then(|| incentive(*variant, run, &variants, &runs))?)
            .collect();
        let of_reported = runs.into_iter().zip(incentives).enumerate();
        outcomes.runs.extend(of_reported.map(|(variant, (run, incentive))| SimulationResult {
            variant,
            window: sample.window,
            seed: sample.seed,
            load: surveyed.load,
            left_out: surveyed.left_out,
            incentive,
            models: run.models,
            evaluated: run.evaluated,
        }));
    }
    Ok(outcomes)
}

fn threads(arguments: &SimulateArguments) -> usize {
    let threads = arguments.jobs.or_else(|| thread::available_parallelism().ok());
    threads.map_or(1, NonZeroUsize::get)
}

/// The policies to report, and after them those that are needed to compare these with.
fn with_shadows<'a>(reported: &[PolicyVariant<'a>], incentive: bool) -> Vec<PolicyVariant<'a>> {
    let mut variants = reported.to_vec();
    for variant in reported.iter().filter(|_| incentive) {
        for shadow in [variant.exclusive(), variant.exclusive().nudged()] {
            if !variants.contains(&shadow) {
                variants.push(shadow);
            }
        }
    }
    variants
}

/// How a policy with sharing compares with itself without; `None` for one without.
fn incentive(
    variant: PolicyVariant<'_>,
    run: &FinishedRun,
    variants: &[PolicyVariant<'_>],
    runs: &[FinishedRun],
) -> Option<SharingIncentive> {
    if variant == variant.exclusive() {
        return None;
    }
    let jobs_of = |shadow| {
        let position = variants.iter().position(|it| *it == shadow)?;
        Some(&runs[position].evaluated.jobs)
    };
    let (exclusive, nudged) = (jobs_of(variant.exclusive())?, jobs_of(variant.exclusive().nudged())?);
    Some(SharingIncentive::of(&run.evaluated.jobs, exclusive, nudged))
}

/// The runs of a command.
struct Runner<'a> {
    arguments: &'a SimulateArguments,
    input: &'a Input,
    samples: &'a [Sample],
    variants: &'a [PolicyVariant<'a>],
    agents: LoadedAgents,
    /// What runs that learn start with.
    learning: Option<OnlineLearning>,
    /// The jobs of each sample while a run uses them.
    workloads: Vec<Mutex<Weak<SeededWorkload>>>,
}

/// What is kept of a run.
struct FinishedRun {
    evaluated: EvaluationResult,
    /// How many models replaced the one before.
    models: Option<usize>,
}

impl<'a> Runner<'a> {
    fn new(
        arguments: &'a SimulateArguments,
        input: &'a Input,
        samples: &'a [Sample],
        variants: &'a [PolicyVariant<'a>],
    ) -> Result<Runner<'a>, CommandError> {
        let start_learning = || {
            OnlineLearning::of(arguments.workload.predictor(), input.measurements.as_ref(), &input.knowledge)
        };
        Ok(Runner {
            agents: LoadedAgents::load(&arguments.agents)?,
            learning: arguments.learn_online.then(start_learning).transpose()?,
            workloads: samples.iter().map(|_| Mutex::default()).collect(),
            arguments,
            input,
            samples,
            variants,
        })
    }

    /// Every run, by sample and, within a sample, by variant. Each thread takes the next one until none is
    /// left or one has failed.
    fn run(&self, threads: usize) -> Result<Vec<FinishedRun>, CommandError> {
        let count = self.samples.len() * self.variants.len();
        let progress = SimulationProgress::new(count);
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        let work = || {
            while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|it| *it < count) {
                let run = self.run_one(index, &progress);
                if run.is_err() {
                    next.store(count, Ordering::Relaxed);
                }
                done.lock().unwrap_or_else(PoisonError::into_inner).push((index, run));
            }
        };
        thread::scope(|scope| (0..threads.min(count)).for_each(|_| _ = scope.spawn(work)));
        progress.end();
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(index, _)| *index);
        done.into_iter().map(|(_, run)| run).collect()
    }

    fn run_one(&self, index: usize, progress: &SimulationProgress) -> Result<FinishedRun, CommandError> {
        let (sample, variant) = (index / self.variants.len(), self.variants[index % self.variants.len()]);
        let jobs = self.workload(sample)?;
        let seed = self.samples[sample].seed;
        let of_variant = under(variant, &jobs.workload.jobs);
        let evaluation = Evaluation {
            fair_share: variant.fair_share == FairShare::On,
            ..self.input.evaluation(variant.policy, &jobs, of_variant, seed)
        };
        let mut observer = progress.begin(&variant.to_string(), evaluation.jobs.len());
        let agents: Option<Box<dyn Agents>> = variant.agents.map(|folder| self.agents.of(folder));
        let internal = |error| CommandError::from_error(CommandErrorKind::Internal, &error);
        let (mut evaluated, models) = match (self.learning(variant), agents) {
            (Some(learning), agents) => {
                let (evaluated, models) = learning.evaluate(evaluation, &mut observer, agents)?;
                (evaluated, Some(models))
            }
            (None, Some(agents)) => {
                (evaluate_agents(evaluation, &mut observer, None, agents).map_err(internal)?, None)
            }
            (None, None) => (evaluate(evaluation, &mut observer).map_err(internal)?, None),
        };
        evaluated.metrics.policy = variant.to_string();
        Ok(FinishedRun { evaluated, models })
    }

    /// What the runs of a policy learn from, if they learn.
    fn learning(&self, variant: PolicyVariant<'_>) -> Option<&OnlineLearning> {
        let uses = uses_interference(variant.policy).is_ok_and(|uses| uses);
        self.learning.as_ref().filter(|_| uses && variant.sharing == Sharing::Shared)
    }

    /// The jobs of a sample, made by the first run that needs them.
    fn workload(&self, sample: usize) -> Result<Arc<SeededWorkload>, CommandError> {
        let mut kept = self.workloads[sample].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = kept.upgrade() {
            return Ok(jobs);
        }
        let jobs = Arc::new(jobs_of(self.arguments, self.input, self.samples[sample])?);
        *kept = Arc::downgrade(&jobs);
        Ok(jobs)
    }
}

/// The jobs as a run of this variant has them. Their order stays, so that runs can be compared job by job.
fn under(variant: PolicyVariant<'_>, jobs: &[WorkloadJob]) -> Vec<WorkloadJob> {
    let mut jobs: Vec<WorkloadJob> = jobs
        .iter()
        .cloned()
        .map(|job| match variant.sharing {
            Sharing::Exclusive => job.exclusive(),
            Sharing::Shared => job,
        })
        .collect();
    jobs.sort_by_key(|job| job.at);
    if variant.nudged {
        for second in (1..jobs.len()).step_by(2) {
            let next = jobs.get(second + 1).map_or(Time::NEVER, |job| job.at);
            jobs[second].at = next.min(jobs[second].at + NUDGE);
        }
    }
    jobs
}

#[cfg(test)]
mod tests {
    use cohabit_types::JobSpec;

    use super::*;

    #[test]
    fn every_second_job_is_nudged_and_none_passes_the_next() {
        let job = |millis: u64| WorkloadJob {
            line: None,
            at: Time::EPOCH + Span::from_millis(millis),
            user: "ada".into(),
            spec: JobSpec::command(vec!["train".into()], "/".into()),
            iterations: 1,
            pace: 1.0,
            alone_milli: 1_000,
        };
        let plain = PolicyVariant {
            policy: "fifo",
            agents: None,
            sharing: Sharing::Exclusive,
            fair_share: FairShare::On,
            nudged: false,
        };
        let times = |variant| -> Vec<u64> {
            let jobs = under(variant, &[job(0), job(0), job(400), job(500), job(9_000), job(10_000)]);
            jobs.iter().map(|job| job.at.as_micros() / 1_000).collect()
        };
        assert_eq!(times(plain), [0, 0, 400, 500, 9_000, 10_000]);
        assert_eq!(times(plain.nudged()), [0, 400, 400, 1_500, 9_000, 11_000]);
    }
}
