//! Helpers that build scenarios.

use cohabit_types::{Bytes, DeviceId, GpuRequest, JobId, JobRecord, JobSpec, Role, Share, Span, Time};
use cohabit_worker_core::{GpuAccess, RankStart};

use crate::failure::SimFailure;
use crate::machine_spec::MachineSpec;
use crate::program::SimProgram;
use crate::recorder::TraceDetail;
use crate::run::{RunResult, run};
use crate::scenario::{ExternalEvent, Scenario};

pub(super) const fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

pub(super) fn at(secs_since_start: u64) -> Time {
    Time::EPOCH + secs(secs_since_start)
}

/// This many machines with two devices each, which join in their order; the quiet phase begins with the third
/// hour.
pub(super) fn cluster(machines: u32) -> Scenario {
    let shapes = (0..machines).map(|number| MachineSpec::new(&format!("node-{number}"), 2)).collect();
    let delay = Span::from_millis(1);
    Scenario { delay: (delay, delay), ..Scenario::calm(shapes) }.quiet(at(7_200))
}

/// A job that runs this many seconds alone.
pub(super) fn work(alone: u64) -> JobSpec {
    SimProgram::working(secs(alone)).job()
}

/// The same on a part of a device, with a little of its memory.
pub(super) fn work_on(part: u32, alone: u64) -> JobSpec {
    let mut spec = work(alone);
    spec.demand.gpus = GpuRequest::Part(Share(part));
    spec.demand.gpu_memory = Some(Bytes(1 << 30));
    spec
}

/// A rank to be started on these devices.
pub(super) fn start(number: u64, spec: JobSpec, devices: &[&str]) -> RankStart {
    RankStart {
        rank: JobId::new(number).attempt(1).rank(0),
        share: spec.demand.share(),
        spec: spec.into(),
        user: "ada".into(),
        account: "ada".into(),
        role: Role::User,
        private_uid: None,
        devices: devices.iter().map(|device| DeviceId((*device).into())).collect(),
        access: GpuAccess::None,
        rendezvous_port: None,
        application: None,
        place: None,
        node_rank: 0,
        checkpoints: None,
        note: None,
        idle_after: None,
        environment: [].into(),
    }
}

/// A broken link of a worker; each side notices after its own delay.
pub(super) const fn cut(node: usize, length: u64, head_notices: u64, worker_notices: u64) -> ExternalEvent {
    let (length, head_notices, worker_notices) = (secs(length), secs(head_notices), secs(worker_notices));
    ExternalEvent::Cut { node, length, head_notices, worker_notices }
}

/// Runs the scenario, which must not violate anything.
#[track_caller]
pub(super) fn held(scenario: Scenario) -> RunResult {
    let run = run(1, scenario, TraceDetail::Last(60));
    assert_eq!(run.failure, None, "{}", run.trace.join("\n"));
    run
}

/// Runs the scenario, which must fail, and returns the failure.
#[track_caller]
pub(super) fn failed(scenario: Scenario) -> SimFailure {
    run(1, scenario, TraceDetail::Nothing).failure.expect("the run should fail")
}

/// The record of the only job.
#[track_caller]
pub(super) fn only(run: &RunResult) -> &JobRecord {
    let [record] = run.jobs.as_slice() else { panic!("{} jobs instead of one", run.jobs.len()) };
    record
}

/// Whole seconds between two times.
pub(super) fn seconds(from: Option<Time>, to: Option<Time>) -> u64 {
    to.expect("it has ended").since(from.expect("it has begun")).as_micros() / 1_000_000
}
