//! Fixed records for the snapshot tests.

use std::collections::BTreeMap;

use cohabit_client::types::{
    ArraySummary, AttemptRecord, Bandwidth, Bytes, CodeSnapshot, Condition, ContentHash, Demand, Device,
    DeviceId, DeviceKind, DeviceRecord, DeviceSharing, DeviceTelemetry, Enforcement, GpuPeer, GpuPerformance,
    GpuProperties, GpuReading, GpuRequest, Health, HostShare, IdleRecord, Isolation, JobId, JobLabels,
    JobPrediction, JobRecord, JobState, LinkBandwidths, NodeId, NodeRecord, NodeState, Outcome, PeerPath,
    Progress, RankRecord, ReasonCode, RefusedWorker, Role, Share, SharingLimits, Signal, Slowdown, Span,
    Time, TokenRecord, UserIsolation,
};

/// This many seconds after 08:33:20 UTC on 21 November 2026.
pub(crate) fn at(seconds: u64) -> Time {
    Time::from_micros(1_795_250_000_000_000) + Span::from_secs(seconds)
}

/// A pending job that has never run.
pub(crate) fn pending() -> JobRecord {
    JobRecord {
        id: JobId::new(14),
        name: "eval".into(),
        user: "ada".into(),
        group: None,
        state: JobState::Pending,
        reason_code: ReasonCode::WaitingForDevices,
        reason: "waits for 2 devices on one node; the most that is free is 1".into(),
        work: "python eval.py".into(),
        shell_command: None,
        demand: Demand { gpus: GpuRequest::Whole(2), ..Demand::default() },
        priority: 0,
        time_limit: None,
        workdir: "/home/ada".into(),
        code: None,
        application: None,
        attempt: 0,
        attempts: Vec::new(),
        exit_code: None,
        signal: None,
        submitted_at: at(5),
        started_at: None,
        ended_at: None,
        sharing_with: Vec::new(),
        trained: Default::default(),
        predicted: None,
        slowdown_measured: None,
        progress: None,
        array: None,
        revision: 1,
        labels: JobLabels::default(),
    }
}

/// A job in its second attempt that shares a device with another job.
pub(crate) fn running() -> JobRecord {
    let metrics = BTreeMap::from([("accuracy".to_owned(), 0.9.into()), ("loss".to_owned(), 0.4123.into())]);
    JobRecord {
        id: JobId::new(12),
        name: "resnet".into(),
        group: Some("nightly".into()),
        state: JobState::Running,
        reason_code: ReasonCode::Running,
        reason: "runs on one node".into(),
        work: "python train.py --lr 0.1".into(),
        demand: Demand {
            gpus: GpuRequest::Part(Share(500)),
            gpu_memory: Some(Bytes(20 << 30)),
            cpus: 4,
            memory: Bytes(16 << 30),
            ..Demand::default()
        },
        priority: 10,
        time_limit: Some(Span::from_secs(7_200)),
        workdir: "/home/ada/net/src".into(),
        code: Some(CodeSnapshot {
            manifest: ContentHash([0x3f; 32]),
            folder: "/home/ada/net".into(),
            files: 412,
            bytes: Bytes((34 << 20) / 10),
        }),
        attempt: 2,
        attempts: vec![
            attempt(1, 10, Some(60), Some(Outcome::Signalled(Signal::KILL))),
            attempt(2, 70, None, None),
        ],
        submitted_at: at(0),
        started_at: Some(at(70)),
        sharing_with: vec![JobId::new(13)],
        slowdown_measured: Some(Slowdown(1_215)),
        predicted: Some(JobPrediction {
            slowdown: Some(Slowdown(1_180)),
            gpu_memory: None,
            iterations: Some(1_000),
            runtime: Some(Span::from_secs(600)),
            runtime_between: Some([Span::from_secs(420), Span::from_secs(900)]),
            runs: Some(14),
            starts_at: Some(at(10)),
            ends_at: Some(at(610)),
            starts_between: Some([at(5), at(20)]),
            ends_between: Some([at(430), at(910)]),
        }),
        progress: Some(Progress { step: 420, total: Some(1_000), rate: Some(2.5), metrics, at: at(100) }),
        ..pending()
    }
}

fn attempt(number: u32, started: u64, ended: Option<u64>, outcome: Option<Outcome>) -> AttemptRecord {
    AttemptRecord {
        attempt: number,
        started_at: at(started),
        ended_at: ended.map(at),
        stopped: None,
        host: vec![HostShare { cpus: 6, memory: Bytes(20 << 30) }],
        idle: ended.is_none().then(|| IdleRecord { since: at(12), stop_from: Some(at(15)), stop_at: None }),
        ranks: vec![RankRecord {
            node: "gpu1".into(),
            devices: vec![DeviceId("GPU-5e1".into())],
            share: Share(500),
            enforcement: Some(Enforcement::Unenforced("MPS is switched off on this worker".into())),
            gpu_memory: ended.is_none().then_some(Bytes(7 << 30)),
            host_limits: Some(Enforcement::Unenforced("no delegated cgroup".into())),
            private_uid: (number == 1).then_some(61_184),
            outcome,
        }],
    }
}

/// Gives the attempt whole devices.
fn whole(mut attempt: AttemptRecord) -> AttemptRecord {
    attempt.ranks.iter_mut().for_each(|rank| (rank.share, rank.enforcement) = (Share::WHOLE, None));
    attempt
}

/// An array with 37 of 100 members ended.
pub(crate) fn array() -> JobRecord {
    let states = BTreeMap::from([
        (JobState::Completed, 36),
        (JobState::Failed, 1),
        (JobState::Running, 4),
        (JobState::Pending, 59),
    ]);
    JobRecord {
        id: JobId::new(9),
        name: "sweep".into(),
        state: JobState::Running,
        reason_code: ReasonCode::Running,
        reason: "4 of 100 members run".into(),
        work: "./sweep.sh".into(),
        demand: Demand::default(),
        started_at: Some(at(1)),
        array: Some(ArraySummary { members: 100, states }),
        ..pending()
    }
}

/// A failed job.
pub(crate) fn failed() -> JobRecord {
    JobRecord {
        id: JobId::member(7, 3),
        name: "broken".into(),
        state: JobState::Failed,
        reason_code: ReasonCode::ExitCode,
        reason: "exited with code 3".into(),
        work: "sh -c exit 3".into(),
        shell_command: Some("sh -c 'exit 3'".into()),
        demand: Demand { gpus: GpuRequest::Whole(0), ..Demand::default() },
        attempt: 1,
        attempts: vec![whole(attempt(1, 10, Some(12), Some(Outcome::Exited(3))))],
        exit_code: Some(3),
        started_at: Some(at(10)),
        ended_at: Some(at(12)),
        ..pending()
    }
}

/// Nodes: one with real devices, a drained one with a simulated device, and a paused one.
pub(crate) fn nodes() -> Vec<NodeRecord> {
    let device = |id: &str, kind, model: &str, memory, used, jobs: &[u64]| DeviceRecord {
        device: Device::new(DeviceId(id.into()), kind, model, memory),
        used: Share(used),
        memory_used: Bytes(20 << 30),
        jobs: jobs.iter().copied().map(JobId::new).collect(),
        telemetry: None,
    };
    let large = Some(Bytes(141 << 30));
    let node = |name: &str, state, devices: Vec<DeviceRecord>, jobs: &[u64]| NodeRecord {
        id: NodeId(Default::default()),
        name: name.into(),
        state,
        drain: None,
        problem: (state == NodeState::Paused).then(|| "no space is left on its disk".into()),
        address: format!("{name}.lab"),
        build: "0.1.0".into(),
        cpus: 64,
        cpus_used: 4,
        memory: Bytes(512 << 30),
        memory_used: Bytes(16 << 30),
        links: LinkBandwidths { network: Some(Bandwidth(25_000_000_000)), interconnect: None },
        sharing: SharingLimits::default(),
        isolation: Isolation {
            users: UserIsolation::Apart,
            host_limits: Enforcement::Enforced,
            devices: Enforcement::Enforced,
        },
        devices,
        jobs: jobs.iter().copied().map(JobId::new).collect(),
        since: at(0),
    };
    vec![
        node(
            "gpu1",
            NodeState::Up,
            vec![
                measured(device("GPU-5e1", DeviceKind::Gpu, "NVIDIA H200", large, 1_000, &[12, 13])),
                fenced(device("GPU-77c", DeviceKind::Gpu, "NVIDIA H200", large, 250, &[15])),
                device("host-0", DeviceKind::Host, "host slot", None, 0, &[]),
            ],
            &[12, 13, 15],
        ),
        node(
            "trial",
            NodeState::Drained,
            vec![device("sim-0", DeviceKind::Fake, "H200", large, 0, &[])],
            &[],
        ),
        node("full", NodeState::Paused, Vec::new(), &[]),
    ]
}

/// Adds everything that a driver reports.
fn measured(record: DeviceRecord) -> DeviceRecord {
    let facts = GpuProperties {
        multiprocessors: Some(132),
        compute_capability: Some((9, 0)),
        pci_address: "00000000:3B:00.0".into(),
        driver: "580.159".into(),
        cuda: Some((13, 0)),
        peers: vec![GpuPeer { device: DeviceId("GPU-77c".into()), path: PeerPath::NvLink(18) }],
        ..GpuProperties::default()
    };
    let condition = Condition {
        sharing: DeviceSharing::Enforced,
        foreign_memory: Bytes(256 << 20),
        ..Condition::default()
    };
    let performance = GpuPerformance { sm_active: Some(0.61), ..GpuPerformance::default() };
    let reading = GpuReading {
        utilization: Some(0.93),
        memory_used: Some(Bytes(31 << 30)),
        power: Some(512.4),
        temperature: Some(61.0),
        performance: Some(performance),
    };
    let telemetry =
        DeviceTelemetry { device: record.device.id.clone(), at: at(99), reading, ranks: Vec::new() };
    let device = Device { gpu: Some(facts), condition, ..record.device };
    DeviceRecord { device, telemetry: Some(telemetry), ..record }
}

fn fenced(record: DeviceRecord) -> DeviceRecord {
    let health = Health::Fenced("it fell off the bus".into());
    let condition = Condition { health, ..Condition::default() };
    DeviceRecord { device: Device { condition, ..record.device }, ..record }
}

/// Workers that wanted to be one of the nodes, and a node that is not listed any more.
pub(crate) fn refused() -> Vec<RefusedWorker> {
    let worker =
        |node, address: &str, times| RefusedWorker { node, address: address.into(), at: at(90), times };
    let unlisted = serde_json::from_str("\"00000000-0000-0000-0000-000000000063\"").expect("it is an id");
    vec![worker(nodes()[0].id, "10.0.0.9", 1), worker(unlisted, "10.0.0.7", 12)]
}

/// Tokens with and without an expiry date.
pub(crate) fn tokens() -> Vec<TokenRecord> {
    let token = |name: &str, role, expires_at| TokenRecord {
        name: name.into(),
        role,
        account: (role == Role::Admin).then(|| "root".into()),
        node: (role == Role::Worker).then(|| "w1".into()),
        created_at: at(0),
        expires_at,
    };
    vec![
        token("admin", Role::Admin, None),
        token("ada", Role::User, Some(at(2_592_000))),
        token("for-w1", Role::Worker, None),
    ]
}
