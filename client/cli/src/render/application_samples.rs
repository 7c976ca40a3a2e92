//! Fixed applications for the snapshot tests.

use cohabit_client::types::{
    ActorListing, ActorRecord, ActorStage, ApplicationRecord, Bytes, Demand, GpuRequest, JobId, JobState,
    ObjectListing, ObjectLocation, ObjectRecord, ObjectStoreRecord, RunnerCount, RunnerRole, Share, Span,
    TaskClassRecord, TaskListing, TaskRecord, TaskRunnerRecord, TaskRunnerStage, TaskStatus,
};

use super::samples::{at, running};

/// Applications of two users; two have the same name.
pub(crate) fn applications() -> Vec<ApplicationRecord> {
    let search = ApplicationRecord {
        job: JobId::new(3),
        name: "search".into(),
        user: "ada".into(),
        state: JobState::Running,
        attempt: Some(JobId::new(3).attempt(1)),
        code: None,
        program: "search".into(),
        runners: [4, 5, 6, 7].map(JobId::new).into(),
        mains: vec![JobId::new(4)],
        counts: vec![
            RunnerCount { role: RunnerRole::Main, placed: 1, waiting: 0 },
            RunnerCount { role: RunnerRole::Actor, placed: 2, waiting: 1 },
        ],
        submitted_at: at(0),
        started_at: Some(at(10)),
        node: Some("gpu1".into()),
        gpus: Share(500),
        max_gpus: Some(2),
    };
    let pending = |job, name: &str| ApplicationRecord {
        job: JobId::new(job),
        name: name.into(),
        user: "eve".into(),
        state: JobState::Pending,
        attempt: None,
        runners: Vec::new(),
        mains: Vec::new(),
        counts: Vec::new(),
        started_at: None,
        node: None,
        gpus: Share(0),
        max_gpus: None,
        ..search.clone()
    };
    vec![search.clone(), pending(12, "count"), pending(9, "search")]
}

/// The actors of the first one: ready, restarting, waiting and ended, a member of a gang, and an unreachable
/// one.
pub(crate) fn actors() -> ActorListing {
    let ready = ActorRecord {
        id: 1,
        kind: "Trial".into(),
        name: None,
        rank: None,
        detached: false,
        gpus: Share(500),
        state: ActorStage::Ready,
        why: String::new(),
        incarnation: 1,
        job: Some(running().id),
        calls: 3,
        holders: 2,
    };
    let with = |id, state, why: &str| ActorRecord { id, state, why: why.into(), ..ready.clone() };
    let queued = ActorRecord {
        name: Some("server".into()),
        detached: true,
        incarnation: 0,
        job: None,
        ..with(
            3,
            ActorStage::Queued,
            "needs 0.5 GPUs; 2 of max_gpus 2 are in use, and 0 others wait before it",
        )
    };
    let ended = ActorRecord { job: None, calls: 0, ..with(4, ActorStage::Ended, "it was stopped") };
    let member = ActorRecord { rank: Some(1), ..with(6, ActorStage::Ready, "") };
    let silent = "nothing has been heard of node gpu2 for 12 s: it may run there, or have ended";
    let unreachable = with(7, ActorStage::Unreachable, silent);
    let restarting = with(2, ActorStage::Restarting, "");
    let actors = vec![ready.clone(), restarting, queued, ended, member, unreachable];
    ActorListing { actors, omitted: 1, silent: vec![JobId::new(7).attempt(1).rank(0)] }
}

/// Its tasks: running, waiting, returned and failed.
pub(crate) fn tasks() -> TaskListing {
    let demand = running().demand;
    let runner = |job: Option<u64>, state, why: &str| TaskRunnerRecord {
        job: job.map(JobId::new),
        state,
        why: why.into(),
    };
    let live = TaskClassRecord {
        demand: Demand { gpus: GpuRequest::Whole(0), cpus: 2, ..Demand::default() },
        wanted: 3,
        runners: vec![
            runner(Some(12), TaskRunnerStage::Live, ""),
            runner(None, TaskRunnerStage::Pending, "it is being submitted"),
        ],
        why: String::new(),
    };
    let waiting = TaskClassRecord {
        demand,
        wanted: 1,
        runners: vec![runner(Some(14), TaskRunnerStage::Pending, "no GPU is free")],
        why: "job 14 for them waits: no GPU is free".into(),
    };
    let running = TaskRecord {
        name: "parse".into(),
        caller: JobId::new(4).attempt(1).rank(0),
        call: 17,
        depth: 0,
        class: Some(0),
        state: TaskStatus::Running,
        why: String::new(),
        runner: Some(JobId::new(12).attempt(1).rank(0)),
        took: None,
    };
    let with = |call, state| TaskRecord { call, state, ..running.clone() };
    let waits = TaskRecord { class: Some(1), runner: None, ..with(18, TaskStatus::Waiting) };
    let ended = |call, state, why: &str, took| TaskRecord {
        class: None,
        why: why.into(),
        took: Some(Span::from_micros(took)),
        ..with(call, state)
    };
    let tasks = vec![
        running.clone(),
        with(16, TaskStatus::Parked),
        waits,
        ended(15, TaskStatus::Returned, "", 950),
        ended(14, TaskStatus::Failed, "no such file", 12_345_678),
    ];
    TaskListing {
        classes: vec![live, waiting],
        tasks,
        omitted: 20_000,
        silent: vec![JobId::new(7).attempt(1).rank(0)],
    }
}

/// Its objects, in memory and on disk.
pub(crate) fn objects() -> ObjectListing {
    let store = JobId::new(3).attempt(1).rank(0);
    let object = |id: &str, bytes, place, mapped_by| ObjectRecord {
        id: id.into(),
        bytes: Bytes(bytes),
        store,
        node: "n1".into(),
        place,
        holders: 2,
        mapped_by,
    };
    ObjectListing {
        stores: vec![ObjectStoreRecord {
            member: store,
            node: "n1".into(),
            memory: Bytes(64 << 20),
            disk: Bytes(192 << 20),
            budget: Bytes(512 << 20),
        }],
        objects: vec![
            object("4.1-1", 192 << 20, ObjectLocation::Disk, vec![]),
            object("4.1-2", 64 << 20, ObjectLocation::Memory, vec![JobId::new(5).attempt(1).rank(0)]),
        ],
        omitted: 0,
        silent: Vec::new(),
    }
}
