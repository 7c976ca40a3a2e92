//! Samples of jobs that run in slices of time, of stalls, and of the signals of a stop.

use cohabit_scheduler_core::Event;
use cohabit_types::{
    Bytes, CheckpointResult, CheckpointSource, ClientRequestId, DeviceUsage, DrainRequest, JobEventKind,
    JobId, JobSettings, JobSpec, JobState, MetricValue, Outcome, Principal, Progress, ReasonCode, Report,
    Request, Role, Signal, Span, StallAction, StallPolicy, StopReason, Submit, TimeLimitSetting, UsageCurve,
    UsagePoint,
};

use super::samples::{at, gpu, rank, worker};

/// A job in slices is submitted, stalls, and is stopped while its metrics are no numbers.
pub(super) fn events() -> Vec<Event> {
    let stall = |action| Some(StallPolicy { timeout: Span::from_secs(600), action });
    let spec = JobSpec::command(vec!["train".into()], "/tmp".into());
    let in_slices = JobSpec {
        time_limit: Some(Span::from_secs(14_400)),
        requeue_on_timeout: true,
        stall: stall(StallAction::Requeue),
        ..spec.clone()
    };
    let watched = JobSpec { stall: stall(StallAction::Warn), ..spec };
    let submit = |spec| {
        let submit = Submit { spec, idempotency_key: None, estimate: None };
        let by = Principal::new("ada", Role::User);
        Event::Client(ClientRequestId(9), by, Request::Submit(Box::new(submit)))
    };
    let attempt = rank().attempt;
    let values = [("loss", f64::NAN), ("norm", f64::INFINITY), ("low", f64::NEG_INFINITY), ("lr", 0.5)];
    let metrics = values.map(|(name, value)| (name.to_owned(), MetricValue(value))).into();
    let progress = Progress { step: 9, total: None, rate: None, metrics, at: at(5) };
    let ended = Report::Ended {
        rank: rank(),
        outcome: Outcome::Signalled(Signal::TERM),
        stopped: Some(StopReason::Stalled),
        progress: Some(progress),
        at: at(6),
        usage: device_usage(),
    };
    let since = at(5);
    let idle = Report::Idle { attempt, since, quiet_for: Span::from_secs(1_800) };
    let stalled = |step| Report::Stalled { attempt, quiet_for: Span::from_secs(600), step };
    let sent = Report::SignalSent { attempt, signal: Signal::TERM };
    let found = |result| Report::Checkpoints { attempt, source: source(), result };
    let by =
        |name: &str, role, request| Event::Client(ClientRequestId(9), Principal::new(name, role), request);
    let limit = |limit| JobSettings { time_limit: Some(limit), ..JobSettings::default() };
    let all = JobSettings {
        priority: Some(-2),
        retries: Some(3),
        begin: Some(at(9)),
        ..limit(TimeLimitSetting::Unlimited)
    };
    let updates = [all, limit(TimeLimitSetting::Limit(Span::from_secs(60)))]
        .map(|update| by("ada", Role::User, Request::Update(update, vec![JobId::new(4)])));
    let (reason, within) = (Some("new power supply".to_owned()), Some(Span::from_secs(7_200)));
    let drain = by("root", Role::Admin, Request::Drain(DrainRequest { node: "box".into(), reason, within }));
    let [carried, missing] = checkpoint_results().map(found);
    let reports =
        [carried, missing, stalled(None), stalled(Some(9)), idle, Report::Active(attempt), sent, ended]
            .map(|it| Event::Report(worker(), it));
    let requests = [submit(in_slices), submit(watched)].into_iter().chain(updates).chain([drain]);
    requests.chain(reports).collect()
}

/// Of one GPU whose driver tells everything, and of one whose driver tells little.
fn device_usage() -> Vec<DeviceUsage> {
    let point = |utilization, memory| UsagePoint { utilization, memory };
    let points = vec![point(Some(97), Some(40)), point(None, None), point(Some(0), None)];
    let told = DeviceUsage {
        device: gpu("GPU-1"),
        held: Span::from_secs(35),
        measured: Span::from_secs(30),
        busy: Span::from_millis(14_550),
        idle: Span::ZERO,
        memory: Some(Bytes(3 << 30)),
        capacity: Bytes(80 << 30),
        energy: Some(2.5),
        shared: true,
        curve: UsageCurve { step: Span::from_secs(10), points },
    };
    let untold =
        DeviceUsage { device: gpu("GPU-2"), memory: None, energy: None, shared: false, ..told.clone() };
    vec![told, untold]
}

/// Where the checkpoints of an attempt were.
fn source() -> CheckpointSource {
    CheckpointSource { attempt: 1, node: "box".into() }
}

fn checkpoint_results() -> [CheckpointResult; 2] {
    [CheckpointResult::Carried(Bytes(3 << 20)), CheckpointResult::Missing("node box is not connected".into())]
}

pub(super) fn job_event_kinds() -> [JobEventKind; 9] {
    let attempt = JobId::new(7).attempt(1);
    let stalled = |step| JobEventKind::Stalled { attempt, quiet_for: Span::from_secs(600), step };
    let found = |result| JobEventKind::Checkpoints { attempt, node: "den".into(), source: source(), result };
    let [carried, missing] = checkpoint_results().map(found);
    [
        carried,
        missing,
        stalled(None),
        stalled(Some(9)),
        JobEventKind::Idle { attempt, since: at(5), quiet_for: Span::from_secs(1_800) },
        JobEventKind::SignalSent { attempt, signal: Signal::USR1 },
        JobEventKind::Stopping(attempt, StopReason::Stalled),
        JobEventKind::Ended { state: JobState::Failed, reason: ReasonCode::Stalled },
        JobEventKind::Updated("priority 5".into()),
    ]
}
