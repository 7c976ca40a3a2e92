//! One value for every variant, and for every field that may be there or not.

use std::collections::BTreeMap;

use cohabit_policy::{Action, Plan};
use cohabit_scheduler_core::{Config, Event};
use cohabit_types::{
    ApplicationWork, Array, AttemptId, Bandwidth, Bytes, Cause, ClientRequestId, CodeSnapshot, Command,
    ComputeLimit, ComputeMode, Condition, ContentHash, Demand, Dependency, DependencyKind, Device, DeviceId,
    DeviceKind, DeviceSharing, DrainRequest, Enforcement, EnforcementRequirement, Entrypoint, Estimate,
    GpuPeer, GpuProperties, GpuRequest, Health, HeldFor, HeldRank, HeldRankPhase, HostShare, Incarnation,
    IndexRange, Inventory, Isolation, JobChange, JobEvent, JobEventKind, JobId, JobSpec, JobState,
    LaunchMode, LinkBandwidths, Mig, ModelDescription, ModelFamily, NodeId, Outcome, PeerPath, PipelineStage,
    Placement, PlanRequestId, Principal, Progress, RankId, RankPlacement, ReasonCode, Report, Request,
    ReservationTerms, RetryPolicy, Role, RunnerRole, RunnerWork, Share, Sharing, SharingLimits, Signal,
    Slowdown, Span, Spread, StartFailure, Stop, StopReason, Submit, Time, UserIsolation, WarningSignal,
    WorkerKey,
};
use uuid::Uuid;

use super::archived_array::archived_array;
use super::config_samples::config;
use super::{reservation_samples, script_samples, share_samples, time_samples};

pub(super) const fn at(secs: u64) -> Time {
    Time::from_micros(1_767_225_600_000_000 + secs * 1_000_000)
}

pub(super) fn rank() -> RankId {
    JobId::member(12, 5).attempt(2).rank(3)
}

fn attempt() -> AttemptId {
    JobId::new(7).attempt(1)
}

pub(super) fn worker() -> WorkerKey {
    WorkerKey { node: NodeId(Uuid::from_u128(7)), incarnation: Incarnation(3) }
}

pub(super) fn gpu(name: &str) -> DeviceId {
    DeviceId(name.into())
}

/// Every event that can be in a journal.
pub(super) fn events() -> Vec<Event> {
    let mut events = events_of_format_5();
    let spec = JobSpec { preemptible: true, ..JobSpec::command(vec!["train".into()], "/tmp".into()) };
    let submit = Submit { spec, idempotency_key: None, estimate: None };
    let by = Principal::new("ada", Role::User);
    events.push(Event::Client(ClientRequestId(9), by.clone(), Request::Submit(Box::new(submit))));
    let code = Some(code());
    let spec = JobSpec { code, ..JobSpec::command(vec!["./train".into()], "/home/ada/net/src".into()) };
    let submit = Submit { spec, idempotency_key: None, estimate: None };
    events.push(Event::Client(ClientRequestId(9), by.clone(), Request::Submit(Box::new(submit))));
    for entrypoint in application_parts() {
        let spec =
            JobSpec { code: Some(program()), entrypoint, ..JobSpec::command(vec![], "/home/ada".into()) };
        let submit = Submit { spec, idempotency_key: None, estimate: None };
        events.push(Event::Client(ClientRequestId(9), by.clone(), Request::Submit(Box::new(submit))));
    }
    let inventory = Inventory {
        fetches_code: true,
        prefetches: true,
        application_ports: true,
        changes_host_shares: true,
        ..inventories().remove(0)
    };
    events.push(Event::Joined(worker(), inventory));
    events.push(Event::HeadStarted(Config { max_running_jobs: Some(4), ..config() }));
    events.push(Event::HeadStarted(Config { archive_after: Span::from_secs(3_600), ..config() }));
    let kill = Request::Change(JobChange::Kill, vec![JobId::new(5)]);
    events.push(Event::Client(ClientRequestId(9), by, kill));
    let (outcome, stopped) = (Outcome::Signalled(Signal::KILL), Some(StopReason::Killed));
    events.push(Event::Report(
        worker(),
        Report::Ended { rank: rank(), outcome, stopped, progress: None, at: at(6), usage: Vec::new() },
    ));
    let sharing = DeviceSharing::OneUser("the driver is old".into());
    let condition = Condition { sharing, ..Condition::default() };
    events.push(Event::Report(worker(), Report::Condition { device: gpu("GPU-1"), condition }));
    events.push(Event::Restored(archived_array().1.content));
    events.extend(events_of_host_shares());
    events.extend(time_samples::events());
    events.extend(script_samples::events());
    events.extend(share_samples::events());
    events.extend(reservation_samples::events());
    events.push(Event::BackupRestored { last_number: 44_200_000, attempt_gap: 44_200 });
    events
}

/// A job that gives a range of cores and memory is submitted, placed, and holds something else later.
fn events_of_host_shares() -> [Event; 4] {
    let (host, job) = (HostShare { cpus: 6, memory: Bytes(20 << 30) }, JobId::new(4));
    let demand = Demand { cpus: 2, memory: Bytes(1 << 30), up_to: Some(host), ..Demand::default() };
    let spec = JobSpec { demand, ..JobSpec::command(vec!["train".into()], "/tmp".into()) };
    let submit = Submit { spec, idempotency_key: None, estimate: None };
    let part = RankPlacement {
        node: worker().node,
        devices: vec![gpu("GPU-1")],
        share: Share::WHOLE,
        ranks: vec![],
        host: Some(host),
    };
    let place = Action::Place {
        job,
        placement: Placement { parts: vec![part] },
        runtime: None,
        slowdown: None,
        why: String::new(),
    };
    let allot = Action::Allot { job, host, why: "its speed grows from 1 to 2.4".into() };
    let plan = |action| Event::Planned(PlanRequestId(4), Plan { actions: vec![action], wake: None });
    [
        Event::Client(
            ClientRequestId(9),
            Principal::new("ada", Role::User),
            Request::Submit(Box::new(submit)),
        ),
        plan(place),
        plan(allot),
        Event::Report(worker(), Report::Allotted { attempt: job.attempt(1), host }),
    ]
}

fn program() -> CodeSnapshot {
    CodeSnapshot { folder: "/home/ada/target/release".into(), files: 1, ..code() }
}

fn application_parts() -> Vec<Entrypoint> {
    let arguments = || vec!["--rate".to_owned(), "0.1".to_owned()];
    let root = |max_gpus| {
        let program = "search".to_owned();
        Entrypoint::Application(ApplicationWork { program, arguments: arguments(), max_gpus })
    };
    let runner = |role| {
        let (application, program) = (attempt(), "search".to_owned());
        let node = (role == RunnerRole::Store).then(|| "box".to_owned());
        let ranks = if role == RunnerRole::Actor { 3 } else { 1 };
        Entrypoint::Runner(RunnerWork { application, program, role, arguments: arguments(), node, ranks })
    };
    let roles = RunnerRole::ALL;
    [root(None), root(Some(2))].into_iter().chain(roles.map(runner)).collect()
}

/// A snapshot of code.
pub(super) fn code() -> CodeSnapshot {
    CodeSnapshot {
        manifest: ContentHash([0xab; 32]),
        folder: "/home/ada/net".into(),
        files: 12,
        bytes: Bytes(34_567),
    }
}

/// Those that format 5 can say too: it has no preemptible jobs, none that is cancelled by force, no limit on
/// running jobs, and no GPUs for one user at a time.
pub(super) fn events_of_format_5() -> Vec<Event> {
    let mut events = vec![
        Event::HeadStarted(config()),
        Event::Lost(worker(), "the other side closed it".into()),
        Event::Alarm,
        Event::InterferenceUpdated,
        Event::ClockSet(Span::from_secs(3_600)),
    ];
    events.extend(requests().into_iter().map(|(by, request)| Event::Client(ClientRequestId(9), by, request)));
    events.extend(inventories().into_iter().map(|inventory| Event::Joined(worker(), inventory)));
    events.extend(reports().into_iter().map(|report| Event::Report(worker(), report)));
    events.extend(plans().into_iter().map(|plan| Event::Planned(PlanRequestId(4), plan)));
    events
}

fn requests() -> Vec<(Principal, Request)> {
    let ada = || Principal::new("ada", Role::User);
    let root = || Principal { account: Some("operator".into()), ..Principal::new("root", Role::Admin) };
    let change = |change| (ada(), Request::Change(change, vec![JobId::new(5), JobId::member(6, 0)]));
    let mut requests: Vec<_> =
        [JobChange::Cancel, JobChange::Hold, JobChange::Release, JobChange::Requeue].map(change).into();
    requests.push((ada(), Request::Change(JobChange::Cancel, vec![])));
    requests.push((root(), Request::Drain(DrainRequest::new("box"))));
    requests.push((Principal::new("box", Role::Worker), Request::Resume("box".into())));
    let estimate = |gpu_memory| Estimate {
        iterations: Some(1_000),
        runtime: Some(Span::from_secs(60)),
        gpu_memory,
        basis: "12 earlier runs".into(),
    };
    let key = Some("key 1".to_owned());
    let submits = specs().into_iter().map(|spec| Submit { spec, idempotency_key: None, estimate: None });
    let mut submits: Vec<Submit> = submits.collect();
    submits[0] =
        Submit { idempotency_key: key, estimate: Some(estimate(Some(Bytes(3 << 30)))), ..submits[0].clone() };
    submits[1].estimate = Some(Estimate { iterations: None, runtime: None, ..estimate(None) });
    requests.extend(submits.into_iter().map(|submit| (ada(), Request::Submit(Box::new(submit)))));
    requests
}

fn specs() -> Vec<JobSpec> {
    let plain = || JobSpec::command(vec!["/bin/train".into(), "--fast \"ü\"".into()], "/tmp".into());
    let with_script = Command { argv: vec!["./run.sh".into()], script: Some("#!/bin/sh\ntrue\n".into()) };
    let array = Some(Array { ranges: vec![], at_once: None });
    let mut specs = vec![full_spec(), plain(), JobSpec { array, ..plain() }];
    specs.push(JobSpec { entrypoint: Entrypoint::Command(with_script), ..plain() });
    specs.extend(demands().map(|demand| JobSpec { demand, ..plain() }));
    specs.extend(models().map(|model| JobSpec { model: Some(model), ..plain() }));
    specs
}

/// A job with everything that a user can say about one.
fn full_spec() -> JobSpec {
    let depends = |job, when| Dependency { job, when };
    JobSpec {
        name: "night".into(),
        launch: LaunchMode::PerGpu,
        environment: [("SEED".to_owned(), "7".to_owned())].into(),
        array: Some(Array {
            ranges: vec![
                IndexRange { first: 0, last: 9, step: 3 },
                IndexRange { first: 20, last: 20, step: 1 },
            ],
            at_once: Some(2),
        }),
        depends_on: vec![
            depends(JobId::new(1), DependencyKind::AfterOk),
            depends(JobId::member(2, 4), DependencyKind::AfterAny),
            depends(JobId::new(3), DependencyKind::AfterNotOk),
        ],
        begin: Some(at(500)),
        priority: -3,
        time_limit: Some(Span::from_secs(3_600)),
        retry: RetryPolicy { limit: 2, backoff: Span::from_secs(1), backoff_cap: Span::from_millis(2_500) },
        stop: Stop {
            warning: Some(WarningSignal { signal: Signal::USR1, before: Span::from_secs(60) }),
            grace: Span::from_secs(10),
        },
        group: Some("nightly".into()),
        iterations: Some(10),
        checkpoint: Some("/tmp/checkpoints".into()),
        held: true,
        slurm_environment: true,
        ..JobSpec::command(vec!["train".into()], "/home/ada".into())
    }
}

pub(super) fn demands() -> [Demand; 4] {
    let default = Demand::default();
    [
        Demand {
            has_code: false,
            node: None,
            spans_nodes: false,
            held_for: HeldFor::Unasked,
            reservations: ReservationTerms::default(),
            nodes: 1,
            gpus: GpuRequest::Part(Share(250)),
            gpu_memory: Some(Bytes(5 << 30)),
            cpus: 4,
            memory: Bytes(16 << 30),
            sharing: Sharing::Shared,
            spread: Spread::Even,
            limits: EnforcementRequirement::Enforced,
            compute: ComputeLimit::Capped,
            gpu_processes: 2,
            max_slowdown: Some(Slowdown(1_300)),
            account: None,
            up_to: None,
        },
        Demand { sharing: Sharing::Exclusive, gpus: GpuRequest::Part(Share(500)), ..default },
        Demand { spread: Spread::Free, gpus: GpuRequest::Whole(8), ..default },
        Demand { nodes: 4, gpus: GpuRequest::Whole(0), ..default },
    ]
}

fn models() -> [ModelDescription; 6] {
    let of = |family| ModelDescription { family: Some(family), ..ModelDescription::default() };
    let stage = PipelineStage {
        replicas: 4,
        compute_seconds: 0.11,
        compute_seconds_on: [("H200".to_owned(), 0.03)].into(),
        activation_bytes: 1.2e8,
        gradient_bytes: 1.0e8,
    };
    let full = ModelDescription {
        name: Some("resnet50".into()),
        batch_size: Some(32),
        precision: Some("bf16".into()),
        parameters: Some(25_600_000),
        flops_per_sample: Some(4.1e9),
        activation_bytes: Some(1.25e8),
        input_bytes: Some(150_528),
        operators: [("Conv".to_owned(), 53)].into(),
        iterations: Some(90),
        epochs: Some(3),
        samples: Some(1_281_167),
        stages: vec![stage.clone(), PipelineStage { compute_seconds_on: BTreeMap::new(), ..stage }],
        ..of(ModelFamily::Cnn)
    };
    let [rnn, transformer, embedding, other] =
        [ModelFamily::Rnn, ModelFamily::Transformer, ModelFamily::Embedding, ModelFamily::Other].map(of);
    [full, rnn, transformer, embedding, other, ModelDescription::default()]
}

fn inventories() -> Vec<Inventory> {
    let phases = [HeldRankPhase::Starting, HeldRankPhase::Running(at(3)), HeldRankPhase::Ended];
    let bare = Inventory {
        name: "box".into(),
        address: "10.0.0.7".into(),
        cpus: 8,
        memory: Bytes(16 << 30),
        devices: vec![],
        build: "0.1.0".into(),
        links: LinkBandwidths::default(),
        sharing: SharingLimits::default(),
        max_jobs: None,
        rendezvous_ports: vec![],
        isolation: Isolation::default(),
        fetches_code: false,
        prefetches: false,
        application_ports: false,
        changes_host_shares: false,
        orphan_grace: Span::from_secs(120),
        held_ranks: vec![],
    };
    let full = Inventory {
        devices: devices(),
        links: LinkBandwidths {
            network: Some(Bandwidth(25_000_000_000)),
            interconnect: Some(Bandwidth(2_400_000_000_000)),
        },
        sharing: SharingLimits { max_ranks: 4, reserve: Bytes(2 << 30) },
        max_jobs: None,
        rendezvous_ports: vec![29_601, 29_602],
        isolation: Isolation {
            users: UserIsolation::Apart,
            host_limits: Enforcement::Enforced,
            ..Isolation::default()
        },
        held_ranks: phases.map(|phase| HeldRank { rank: rank(), phase }).into(),
        ..bare.clone()
    };
    vec![bare, full]
}

fn devices() -> Vec<Device> {
    let paths = [
        PeerPath::NvLink(18),
        PeerPath::Board,
        PeerPath::Switch,
        PeerPath::Switches,
        PeerPath::HostBridge,
        PeerPath::NumaNode,
        PeerPath::System,
    ];
    let driver = GpuProperties {
        multiprocessors: Some(132),
        compute_capability: Some((9, 0)),
        pci_address: "00000000:3B:00.0".into(),
        driver: "570.86".into(),
        cuda: Some((12, 8)),
        mig: Mig::On,
        compute_mode: ComputeMode::ExclusiveProcess,
        peers: paths.map(|path| GpuPeer { device: gpu("GPU-2"), path }).into(),
    };
    let unknown = GpuProperties::default();
    let prohibited = GpuProperties { compute_mode: ComputeMode::Prohibited, ..GpuProperties::default() };
    let device = |kind, gpu: Option<GpuProperties>, condition| Device {
        gpu,
        condition,
        ..Device::new(DeviceId("GPU-1".into()), kind, "NVIDIA H200", Some(Bytes(141 << 30)))
    };
    let [well, recovering, fenced] = conditions();
    vec![
        device(DeviceKind::Gpu, Some(driver), well),
        device(DeviceKind::Gpu, Some(unknown), recovering),
        device(DeviceKind::Fake, Some(prohibited), fenced),
        Device::new(gpu("host-0"), DeviceKind::Host, "host slot", None),
    ]
}

fn conditions() -> [Condition; 3] {
    let condition = |health, sharing| Condition { health, sharing, foreign_memory: Bytes(256 << 20) };
    [
        condition(Health::Well, DeviceSharing::Enforced),
        condition(Health::Recovering("MPS is restarted".into()), DeviceSharing::Unenforced("no MPS".into())),
        condition(Health::Fenced("ECC".into()), DeviceSharing::Alone("it is prohibited".into())),
    ]
}

fn enforcements() -> [Enforcement; 2] {
    [Enforcement::Enforced, Enforcement::Unenforced("MPS is switched off".into())]
}

pub(super) fn progress() -> Progress {
    Progress {
        step: 9,
        total: Some(10),
        rate: Some(1.5),
        metrics: [("loss".to_owned(), 0.1.into())].into(),
        at: at(5),
    }
}

fn outcomes() -> Vec<Outcome> {
    let text = || "its words".to_owned();
    let mut outcomes = vec![
        Outcome::Exited(0),
        Outcome::Exited(-1),
        Outcome::Signalled(Signal::KILL),
        Outcome::Lost(text()),
        Outcome::OutOfGpuMemory { code: 1, message: "CUDA out of memory".into() },
        Outcome::OutOfMemory { code: 137, limit: Some(Bytes(2 << 30)), peak: Some(Bytes(1 << 30)) },
        Outcome::OutOfMemory { code: 137, limit: None, peak: None },
    ];
    let failures = [
        StartFailure::CommandNotFound(text()),
        StartFailure::NotExecutable(text()),
        StartFailure::WorkdirMissing(text()),
        StartFailure::DeviceMissing(text()),
        StartFailure::Other(text()),
        StartFailure::PortTaken(29_601),
        StartFailure::DeviceFenced(text()),
        StartFailure::Unenforced(text()),
        StartFailure::NodeProblem(text()),
        StartFailure::Account(text()),
        StartFailure::OrderLost,
    ];
    outcomes.extend(failures.map(Outcome::NotStarted));
    outcomes
}

/// Those that format 5 knows: no job of it was cancelled by force.
const STOP_REASONS: [StopReason; 12] = [
    StopReason::Cancelled,
    StopReason::TimeLimit,
    StopReason::Requeued,
    StopReason::GangBroken,
    StopReason::Preempted,
    StopReason::Superseded,
    StopReason::Orphaned,
    StopReason::MpsFault,
    StopReason::MpsFaultVictim,
    StopReason::GpuMemory,
    StopReason::DeviceLost,
    StopReason::Unenforced,
];

fn reports() -> Vec<Report> {
    let rank = rank();
    let mut reports = vec![Report::Started { rank, at: at(4) }, Report::PrivateUser { rank, uid: 1_000_007 }];
    let ended = |outcome, stopped, progress| Report::Ended {
        rank,
        outcome,
        stopped,
        progress,
        at: at(6),
        usage: Vec::new(),
    };
    reports.extend(outcomes().into_iter().map(|outcome| ended(outcome, None, None)));
    reports.extend(STOP_REASONS.map(|why| ended(Outcome::Exited(143), Some(why), None)));
    let unknown = Progress { total: None, rate: None, metrics: BTreeMap::new(), ..progress() };
    reports.extend([progress(), unknown].map(|progress| ended(Outcome::Exited(0), None, Some(progress))));
    reports.extend(enforcements().map(|enforcement| Report::Sharing { rank, enforcement }));
    reports.extend(conditions().map(|condition| Report::Condition { device: gpu("GPU-1"), condition }));
    reports
}

fn plans() -> Vec<Plan> {
    let part = |ranks| RankPlacement {
        node: worker().node,
        devices: vec![gpu("GPU-1"), gpu("GPU-2")],
        share: Share(500),
        ranks,
        host: None,
    };
    let start = |parts, runtime, slowdown| Action::Place {
        job: JobId::member(12, 5),
        placement: Placement { parts },
        runtime,
        slowdown,
        why: "it is first".into(),
    };
    let bare = RankPlacement { devices: vec![], ..part(vec![]) };
    let full = start(vec![part(vec![1, 0]), bare], Some(Span::from_secs(60)), Some(Slowdown(1_100)));
    let preempt = Action::Preempt { job: JobId::new(3), why: "a job with less service waits".into() };
    vec![
        Plan::default(),
        Plan { actions: vec![full, preempt, start(vec![], None, None)], wake: Some(at(1_000)) },
    ]
}

/// Every event of a job's history.
pub(super) fn job_events() -> Vec<JobEvent> {
    let causes = [
        Cause::User("ada".into()),
        Cause::Plan(PlanRequestId(4)),
        Cause::Node("box".into()),
        Cause::Job(JobId::new(3)),
        Cause::Clock,
        Cause::Restart,
    ];
    let event = |cause, kind| JobEvent { at: at(1), cause, kind };
    let mut events: Vec<JobEvent> =
        causes.into_iter().map(|cause| event(cause, JobEventKind::Submitted)).collect();
    events.extend(job_event_kinds().into_iter().map(|kind| event(Cause::Clock, kind)));
    events
}

fn job_event_kinds() -> Vec<JobEventKind> {
    let (rank, attempt) = (rank(), attempt());
    let placed = |devices, why: &str| JobEventKind::Placed {
        attempt,
        nodes: vec!["box".into()],
        devices,
        share: Share(500),
        waited: Span::from_millis(1_500),
        why: why.into(),
    };
    let requeued =
        |why| JobEventKind::Requeued { attempt, pause: Span::from_secs(5), failures: 1, limit: 3, why };
    let distrusted = |failed| JobEventKind::Distrusted { attempt, predicted: Bytes(3 << 30), failed };
    let mut kinds = vec![
        JobEventKind::Held,
        JobEventKind::Released,
        placed(vec![gpu("GPU-1")], "it is first"),
        placed(vec![], ""),
        JobEventKind::Started(rank),
        JobEventKind::PrivateUser { rank, account: "ada".into(), uid: 1_000_007 },
        JobEventKind::NodeUnreachable { node: "box".into(), lost_after: Span::from_secs(300) },
        JobEventKind::Adopted(attempt),
        JobEventKind::AttemptLost { attempt, detail: "its node was gone".into() },
        requeued(None),
        requeued(Some(StopReason::Preempted)),
        JobEventKind::StaleReport(rank),
        JobEventKind::PlanDropped("no room".into()),
        distrusted(Some(attempt)),
        distrusted(None),
    ];
    kinds.extend(enforcements().map(|enforcement| JobEventKind::Shares { rank, enforcement }));
    kinds.extend(STOP_REASONS.map(|why| JobEventKind::Stopping(attempt, why)));
    kinds.extend(outcomes().into_iter().map(|outcome| JobEventKind::RankEnded { rank, outcome }));
    let ended = |state, reason| JobEventKind::Ended { state, reason };
    kinds.extend(JobState::ALL.map(|state| ended(state, ReasonCode::Completed)));
    kinds.extend(REASONS.map(|reason| ended(JobState::Failed, reason)));
    kinds.push(JobEventKind::Stopping(attempt, StopReason::Killed));
    kinds.push(ended(JobState::Failed, ReasonCode::WaitingForUserLimit));
    kinds.push(ended(JobState::Failed, ReasonCode::HeldAfterFaults));
    kinds.push(JobEventKind::Stopping(attempt, StopReason::ApplicationEnded));
    kinds.push(ended(JobState::Cancelled, ReasonCode::ApplicationEnded));
    let (from, to) =
        [(3, 1), (6, 20)].map(|(cpus, memory)| HostShare { cpus, memory: Bytes(memory << 30) }).into();
    kinds.push(JobEventKind::Allotted { attempt, from, to, why: "its speed grows".into() });
    kinds.extend(time_samples::job_event_kinds());
    kinds
}

const REASONS: [ReasonCode; 32] = [
    ReasonCode::WaitingForTurn,
    ReasonCode::WaitingForNodes,
    ReasonCode::WaitingForDevices,
    ReasonCode::WaitingForMemory,
    ReasonCode::WaitingForHost,
    ReasonCode::WaitingForDependency,
    ReasonCode::WaitingForBegin,
    ReasonCode::WaitingForRetry,
    ReasonCode::WaitingForArrayLimit,
    ReasonCode::WaitingForVirtualTurn,
    ReasonCode::HeldByUser,
    ReasonCode::Running,
    ReasonCode::Stopping,
    ReasonCode::Completed,
    ReasonCode::ExitCode,
    ReasonCode::Signalled,
    ReasonCode::CouldNotStart,
    ReasonCode::CommandNotFound,
    ReasonCode::NotExecutable,
    ReasonCode::WorkdirMissing,
    ReasonCode::CancelledByUser,
    ReasonCode::TimeLimit,
    ReasonCode::NodeLost,
    ReasonCode::ExecutorLost,
    ReasonCode::DependencyFailed,
    ReasonCode::GpuOom,
    ReasonCode::MpsFaultVictim,
    ReasonCode::MpsFault,
    ReasonCode::DeviceLost,
    ReasonCode::SharingUnenforced,
    ReasonCode::MemoryLimit,
    ReasonCode::Oom,
];
