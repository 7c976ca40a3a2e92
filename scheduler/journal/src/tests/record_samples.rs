//! One value for every field of a record that may be there or not.

use cohabit_types::{
    ArraySummary, AttemptRecord, Bytes, Demand, Enforcement, JobId, JobLabels, JobPrediction, JobRecord,
    JobState, Outcome, RankRecord, ReasonCode, Share, Signal, Slowdown, Span, StopReason, Sweep,
    TrainingSpec,
};

use super::samples::{at, code, demands, gpu, progress};
use super::script_samples::output_files;

/// Records of a plain job, of one that ran in every way, of an array as a whole, of one in a code snapshot,
/// of a child of an application, of one of which earlier runs tell something, of a command that has to be
/// quoted, of a job of a script for Slurm, of a member of an array from a file, and of a sweep.
pub(super) fn records() -> Vec<JobRecord> {
    let plain = JobRecord {
        id: JobId::new(7),
        name: "train".into(),
        user: "ada".into(),
        group: None,
        state: JobState::Cancelled,
        reason_code: ReasonCode::CancelledByUser,
        reason: String::new(),
        work: "train --fast".into(),
        shell_command: None,
        demand: Demand::default(),
        priority: 0,
        time_limit: None,
        workdir: "/tmp".into(),
        code: None,
        application: None,
        attempt: 0,
        attempts: vec![],
        exit_code: None,
        signal: None,
        submitted_at: at(0),
        started_at: None,
        ended_at: Some(at(9)),
        sharing_with: vec![],
        trained: TrainingSpec::default(),
        predicted: None,
        slowdown_measured: None,
        progress: None,
        array: None,
        revision: 1,
        labels: JobLabels::default(),
    };
    let array =
        ArraySummary { members: 3, states: [(JobState::NodeFail, 1), (JobState::OutOfMemory, 2)].into() };
    let array = JobRecord { array: Some(array), state: JobState::NodeFail, ..plain.clone() };
    let in_snapshot = JobRecord { code: Some(code()), ..plain.clone() };
    let child = JobRecord {
        application: Some(JobId::new(3)),
        reason_code: ReasonCode::ApplicationEnded,
        work: "actor of application 3".into(),
        ..in_snapshot.clone()
    };
    let by_runs = JobPrediction {
        runtime: Some(Span::from_secs(60)),
        runtime_between: Some([Span::from_secs(40), Span::from_secs(90)]),
        runs: Some(14),
        ends_at: Some(at(61)),
        starts_between: Some([at(1), at(5)]),
        ends_between: Some([at(41), at(91)]),
        ..JobPrediction::default()
    };
    let by_runs = JobRecord { predicted: Some(by_runs), ..plain.clone() };
    let quoted =
        JobRecord { work: "train a b".into(), shell_command: Some("train 'a b'".into()), ..plain.clone() };
    let labels = JobLabels {
        partition: Some("gpu".into()),
        output: output_files(),
        entry: None,
        checkpoint: Some("/c/7".into()),
        sweep: None,
    };
    let entry = Some(r#"{"lr":0.1}"#.into());
    let member = JobRecord { labels: JobLabels { entry, ..JobLabels::default() }, ..plain.clone() };
    let labelled = JobRecord { labels, ..plain.clone() };
    let sweep = Some(Sweep { metric: Some("loss".into()), ..Sweep::default() });
    let swept = JobRecord { labels: JobLabels { sweep, ..JobLabels::default() }, ..plain.clone() };
    vec![full_record(&plain), plain, array, in_snapshot, child, by_runs, quoted, labelled, member, swept]
}

fn full_record(plain: &JobRecord) -> JobRecord {
    let rank = RankRecord {
        node: "box".into(),
        devices: vec![gpu("GPU-1")],
        share: Share(250),
        outcome: Some(Outcome::Signalled(Signal::KILL)),
        enforcement: Some(Enforcement::Enforced),
        gpu_memory: Some(Bytes(3 << 30)),
        host_limits: Some(Enforcement::Unenforced("no cgroups".into())),
        private_uid: Some(1_000_007),
    };
    let unknown = RankRecord {
        outcome: None,
        enforcement: None,
        gpu_memory: None,
        host_limits: None,
        private_uid: None,
        ..rank.clone()
    };
    let attempt = |attempt, ended_at, stopped| AttemptRecord {
        attempt,
        started_at: at(2),
        ended_at,
        stopped,
        ranks: vec![rank.clone(), unknown.clone()],
        host: Vec::new(),
        idle: None,
    };
    JobRecord {
        group: Some("nightly".into()),
        demand: demands()[0],
        priority: -3,
        time_limit: Some(Span::from_secs(60)),
        attempt: 2,
        attempts: vec![attempt(1, Some(at(3)), Some(StopReason::MpsFaultVictim)), attempt(2, None, None)],
        exit_code: Some(137),
        signal: Some(Signal::KILL),
        started_at: Some(at(4)),
        sharing_with: vec![JobId::new(8), JobId::member(9, 1)],
        trained: TrainingSpec {
            model: Some("resnet50".into()),
            batch_size: Some(32),
            precision: Some("bf16".into()),
            replicas: vec![4, 2],
            iterations: Some(90),
        },
        predicted: Some(JobPrediction {
            iterations: Some(1_000),
            runtime: Some(Span::from_secs(60)),
            slowdown: Some(Slowdown(1_200)),
            gpu_memory: Some(Bytes(3 << 30)),
            starts_at: Some(at(1)),
            ends_at: Some(at(61)),
            ..JobPrediction::default()
        }),
        slowdown_measured: Some(Slowdown(1_250)),
        progress: Some(progress()),
        ..plain.clone()
    }
}
