//! Evaluations: the jobs of a workload run by the production head, workers and a policy, without faults, to
//! measure the policy.
//!
//! Nothing is checked after an event and nothing is journaled, so tens of thousands of jobs take seconds.
//! Messages and plans take a millisecond each and processes start at once: schedules are those of the policy,
//! up to some milliseconds per job. A preempted job saves a checkpoint and continues from it; `behavior.rs`
//! has what that costs, and which jobs report their progress.
//! The same seed gives the same result bit for bit, except for the times of a real clock.
//!
//! Start reading with [`evaluate`].

mod behavior;
mod device_spans;
mod error;
mod estimates;
mod incentive;
mod job_result;
mod lower_bound;
mod metrics;
mod noise;
mod occupancy;
mod periods;
mod recorder;
mod result;
mod series;
mod spec;
mod statistics;
mod user_metrics;

use cohabit_policy::maifs::Agents;
use cohabit_policy::parse_policy;
use cohabit_scheduler_core::Config;
use cohabit_types::{Span, Time};

pub use self::behavior::{JobBehavior, ParseStopCostError, StopCost};
pub use self::device_spans::DeviceSpan;
pub use self::error::EvaluationError;
pub use self::estimates::EstimatorKind;
pub use self::incentive::SharingIncentive;
pub use self::job_result::JobResult;
pub use self::metrics::EvaluationMetrics;
use self::metrics::Measured;
pub use self::periods::PeriodMetrics;
use self::recorder::EvaluationRecorder;
pub use self::result::EvaluationResult;
pub use self::series::Series;
pub use self::spec::{ColocationLearner, Evaluation, Observer};
pub use self::user_metrics::UserMetrics;
use crate::machine_spec::MachineSpec;
use crate::recorder::TraceDetail;
use crate::scenario::{CheckLevel, ExternalEvent, Scenario, ScenarioSubmission};
use crate::workload::WorkloadJob;
use crate::world::World;

/// The delay of each message, and the planning time of the policy.
const MESSAGE_DELAY: Span = Span::from_millis(1);
/// How long the head remembers an ended job.
const RETENTION: Span = Span::from_secs(1);
/// Limit after the last arrival, besides all run times; a run that reaches it waits for something that never
/// happens.
const TIME_LIMIT: Span = Span::from_secs(100 * 365 * 86_400);
/// How much longer than alone all jobs one after the other may take.
const MAX_STRETCH: f64 = 10.0;
/// The largest sum of stretched run times in seconds: clocks reach further.
const MAX_TOTAL_SECONDS: f64 = 5e12;

/// Runs the jobs and measures the policy.
///
/// # Errors
/// If the policy is unknown, there are no jobs, the cluster can never run one of them, or an invariant of the
/// production code is violated.
pub fn evaluate(
    evaluation: Evaluation,
    observer: &mut dyn Observer,
) -> Result<EvaluationResult, EvaluationError> {
    evaluate_with(evaluation, observer, None, None)
}

/// Runs the jobs and measures the policy, whose knowledge of interference grows as this learner observes jobs
/// beside each other.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_learning(
    evaluation: Evaluation,
    observer: &mut dyn Observer,
    learner: &mut dyn ColocationLearner,
) -> Result<EvaluationResult, EvaluationError> {
    evaluate_with(evaluation, observer, Some(learner), None)
}

/// Runs the jobs and measures the policy, whose decisions these agents make, if agents make them.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_agents<'a>(
    evaluation: Evaluation,
    observer: &'a mut dyn Observer,
    learner: Option<&'a mut dyn ColocationLearner>,
    agents: Box<dyn Agents>,
) -> Result<EvaluationResult, EvaluationError> {
    evaluate_with(evaluation, observer, learner, Some(agents))
}

fn evaluate_with<'a>(
    mut evaluation: Evaluation,
    observer: &'a mut dyn Observer,
    learner: Option<&'a mut dyn ColocationLearner>,
    agents: Option<Box<dyn Agents>>,
) -> Result<EvaluationResult, EvaluationError> {
    parse_policy(&evaluation.policy)?;
    evaluation.jobs.sort_by_key(|job| job.at);
    if learner.is_some() {
        // Workers take samples on real GPUs only. MPS servers would take time that no policy decides about.
        evaluation.shapes = evaluation.shapes.into_iter().map(MachineSpec::time_sliced).collect();
    }
    let Some(last) = evaluation.jobs.last() else { return Err(EvaluationError::NoJobs) };
    let last_arrival = last.at;
    let begun = observer.clock_us();
    let mut recorder = EvaluationRecorder::new(&evaluation, observer, learner);
    let scenario = scenario(&evaluation, last_arrival);
    let mut world = World::new(evaluation.seed, scenario, TraceDetail::Nothing, &mut recorder);
    if let Some(agents) = agents {
        world.set_agents(agents);
    }
    world.run()?;
    if let Some((job, why)) = world.first_refused() {
        return Err(EvaluationError::Refused { job, why });
    }
    let used = world.device_time();
    let measured = Measured {
        shared_run_time: world.shared_run_time(),
        share_speed: world.share_speed(),
        allotments: world.allotments(),
        events: world.counters.events,
    };
    drop(world);
    recorder.check_device_time(&used)?;
    let wall_us = recorder.clock_us() - begun;
    Ok(recorder.into_result(&evaluation, measured, wall_us))
}

/// A bound on the time that the jobs take together.
fn all_run_times(jobs: &[WorkloadJob]) -> Span {
    let seconds: f64 = jobs.iter().map(|job| job.ideal().as_secs_f64()).sum();
    Span::from_secs_f64((MAX_STRETCH * seconds).min(MAX_TOTAL_SECONDS))
}

fn scenario(evaluation: &Evaluation, last_arrival: Time) -> Scenario {
    let jobs = &evaluation.jobs;
    let submission = |(index, job): (usize, &WorkloadJob)| ScenarioSubmission {
        spec: evaluation.behavior.submitted(evaluation.seed, index, job),
        user: job.user.clone(),
        after: Vec::new(),
        parent: None,
    };
    Scenario {
        config: Config {
            retention: RETENTION,
            archive_after: RETENTION,
            fair_share: evaluation.fair_share,
            ..Config::default()
        },
        policy: evaluation.policy.clone(),
        knowledge: evaluation.knowledge.clone(),
        sensitivity: evaluation.sensitivity.clone(),
        hardware: evaluation.hardware.clone(),
        delay: (MESSAGE_DELAY, MESSAGE_DELAY),
        planning: (MESSAGE_DELAY, MESSAGE_DELAY),
        submissions: jobs.iter().enumerate().map(submission).collect(),
        external_events: jobs
            .iter()
            .enumerate()
            .map(|(index, job)| (job.at, ExternalEvent::Submit(index)))
            .collect(),
        quiet_at: last_arrival,
        end_timeout: TIME_LIMIT + all_run_times(jobs),
        check_level: CheckLevel::Outcomes,
        ..Scenario::calm(evaluation.shapes.clone())
    }
}
