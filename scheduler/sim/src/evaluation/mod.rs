//! Evaluations: the jobs of a workload through the production head, workers and a policy, without trouble,
//! and how the policy did.
//!
//! Nothing is checked after every event and nothing is journaled, so tens of thousands of jobs take
//! seconds. Messages and plans take a millisecond each, processes start at once: schedules are the policy's
//! own, but for some milliseconds per job. A job that is preempted saves its work for a second and goes on
//! from there. By one seed the same comes out bit for bit, but for the times of a real clock.

mod device_spans;
mod error;
mod estimates;
mod job_result;
mod lower_bound;
mod metrics;
mod noise;
mod occupancy;
mod recorder;
mod result;
mod series;
mod spec;
mod statistics;

use cohabit_policy::parse_policy;
use cohabit_scheduler_core::Config;
use cohabit_types::{JobSpec, Span, Time};

pub use self::device_spans::DeviceSpan;
pub use self::error::EvaluationError;
pub use self::estimates::EstimatorKind;
pub use self::job_result::JobResult;
pub use self::metrics::Metrics;
use self::recorder::EvaluationRecorder;
pub use self::result::EvaluationResult;
pub use self::series::Series;
pub use self::spec::{Evaluation, Observer};
use crate::program::{ProgressReporting, SigtermBehaviour, SimProgram, StartBehaviour};
use crate::recorder::TraceDetail;
use crate::scenario::{CheckLevel, ExternalEvent, Scenario, ScenarioSubmission};
use crate::workload::WorkloadJob;
use crate::world::World;

/// How long each message travels, and the policy thinks.
const MESSAGE_DELAY: Span = Span::from_millis(1);
/// How long a preempted job saves its work.
const CHECKPOINT_TIME: Span = Span::from_secs(1);
/// How long the head remembers a job that has ended.
const RETENTION: Span = Span::from_secs(1);
/// After the last arrival; then something waits for what never comes.
const TIME_LIMIT: Span = Span::from_secs(100 * 365 * 86_400);

/// Lets the jobs run and answers how it went.
///
/// # Errors
/// If nobody knows the policy, there are no jobs, the cluster can never run one of them, or a promise of
/// the production code breaks.
pub fn evaluate(
    mut evaluation: Evaluation,
    observer: &mut dyn Observer,
) -> Result<EvaluationResult, EvaluationError> {
    parse_policy(&evaluation.policy)?;
    evaluation.jobs.sort_by_key(|job| job.at);
    let Some(last) = evaluation.jobs.last() else { return Err(EvaluationError::NoJobs) };
    let last_arrival = last.at;
    let begun = observer.clock_us();
    let mut books = EvaluationRecorder::new(&evaluation, observer);
    let scenario = scenario(&evaluation, last_arrival);
    let mut world = World::new(evaluation.seed, scenario, TraceDetail::Nothing, &mut books);
    world.run()?;
    if let Some((job, why)) = world.first_refused() {
        return Err(EvaluationError::Refused { job, why });
    }
    let (used, shared_run_time, events) = (world.device_time(), world.shared_run_time(), world.tally.events);
    drop(world);
    books.check_device_time(&used)?;
    let wall_us = books.clock_us() - begun;
    Ok(books.close(&evaluation, shared_run_time, events, wall_us))
}

fn scenario(evaluation: &Evaluation, last_arrival: Time) -> Scenario {
    let jobs = &evaluation.jobs;
    let submission =
        |job: &WorkloadJob| ScenarioSubmission { spec: spec(job), user: job.user.clone(), after: Vec::new() };
    Scenario {
        config: Config { retention: RETENTION, ..Config::default() },
        policy: evaluation.policy.clone(),
        knowledge: evaluation.knowledge.clone(),
        hardware: evaluation.hardware.clone(),
        delay: (MESSAGE_DELAY, MESSAGE_DELAY),
        planning: (MESSAGE_DELAY, MESSAGE_DELAY),
        submissions: jobs.iter().map(submission).collect(),
        acts: jobs.iter().enumerate().map(|(index, job)| (job.at, ExternalEvent::Submit(index))).collect(),
        quiet_at: last_arrival,
        patience: TIME_LIMIT,
        watch: CheckLevel::Outcomes,
        ..Scenario::calm(evaluation.shapes.clone())
    }
}

/// What is submitted, with a program that does what is true of the job.
fn spec(job: &WorkloadJob) -> JobSpec {
    let told = SimProgram::of(&job.spec);
    let program = SimProgram {
        steps: job.iterations,
        reports: ProgressReporting::Nothing,
        busy: told.busy,
        gpu_memory: told.gpu_memory,
        start: StartBehaviour::Takes(Span::ZERO),
        on_term: SigtermBehaviour::Saves(CHECKPOINT_TIME),
        ..SimProgram::working(job.ideal())
    };
    JobSpec { work: program.job().work, ..job.spec.clone() }
}
