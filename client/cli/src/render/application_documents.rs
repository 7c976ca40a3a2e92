//! Documents of live applications for scripts.
//!
//! Like all documents they are separate types, so that the protocol can change without changing them.

use cohabit_client::types::{
    ActorListing, ActorRecord, ActorStage, ApplicationRecord, GpuRequest, JobId, JobRecord, JobState,
    ObjectListing, ObjectLocation, RankId, Span, TaskClassRecord, TaskListing, TaskRecord, TaskRunnerRecord,
    TaskRunnerStage, TaskStatus,
};
use serde::Serialize;

use super::rfc3339;
use super::silence::{SilentProcess, silent_processes};

/// `{"applications": […]}`
#[derive(Debug, Serialize)]
pub(crate) struct ApplicationListDocument {
    pub(crate) applications: Vec<ApplicationDocument>,
}

/// A live application.
#[derive(Debug, Serialize)]
pub(crate) struct ApplicationDocument {
    id: JobId,
    name: String,
    user: String,
    state: JobState,
    program: String,
    submitted_at: String,
    started_at: Option<String>,
    node: Option<String>,
    mains: Vec<JobId>,
    jobs: Vec<JobId>,
    processes: Vec<ProcessCountDocument>,
    gpus: f64,
    max_gpus: Option<u32>,
}

#[derive(Debug, Serialize)]
struct ProcessCountDocument {
    role: &'static str,
    placed: u32,
    waiting: u32,
}

impl From<&ApplicationRecord> for ApplicationDocument {
    fn from(it: &ApplicationRecord) -> ApplicationDocument {
        let counts = it.counts.iter().map(|count| ProcessCountDocument {
            role: count.role.as_str(),
            placed: count.placed,
            waiting: count.waiting,
        });
        ApplicationDocument {
            id: it.job,
            name: it.name.clone(),
            user: it.user.clone(),
            state: it.state,
            program: it.program.clone(),
            submitted_at: rfc3339(it.submitted_at),
            started_at: it.started_at.map(rfc3339),
            node: it.node.clone(),
            mains: it.mains.clone(),
            jobs: it.runners.clone(),
            processes: counts.collect(),
            gpus: it.gpus.as_f64(),
            max_gpus: it.max_gpus,
        }
    }
}

/// `{"application", "actors": […]}`
#[derive(Debug, Serialize)]
pub(crate) struct ActorListDocument {
    application: JobId,
    actors: Vec<ActorDocument>,
    omitted: u64,
    silent: Vec<RankId>,
    silent_processes: Vec<SilentProcess>,
}

#[derive(Debug, Serialize)]
struct ActorDocument {
    id: u64,
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    rank: Option<u32>,
    detached: bool,
    state: ActorStage,
    reason: Option<String>,
    incarnation: u32,
    job: Option<JobId>,
    node: Option<String>,
    gpus: f64,
    sharing: Option<&'static str>,
    sharing_reason: Option<String>,
    /// None where not all processes have answered.
    calls: Option<u64>,
    known_calls: u64,
    holders: u32,
}

impl ActorListDocument {
    /// `records` are those of the actors' jobs.
    pub(crate) fn new(
        application: JobId,
        listing: &ActorListing,
        records: &[JobRecord],
    ) -> ActorListDocument {
        let document = |actor: &ActorRecord| {
            let record = actor.job.and_then(|job| records.iter().find(|record| record.id == job));
            actor_document(actor, listing.has_all_calls(), record)
        };
        ActorListDocument {
            application,
            actors: listing.actors.iter().map(document).collect(),
            omitted: listing.omitted,
            silent: listing.silent.clone(),
            silent_processes: silent_processes(&listing.silent, records),
        }
    }
}

fn actor_document(actor: &ActorRecord, has_all_calls: bool, record: Option<&JobRecord>) -> ActorDocument {
    let sharing = record.and_then(|record| record.sharing()).map(|it| it.words());
    ActorDocument {
        id: actor.id,
        kind: actor.kind.clone(),
        name: actor.name.clone(),
        rank: actor.rank,
        detached: actor.detached,
        state: actor.state,
        reason: given(&actor.why),
        incarnation: actor.incarnation,
        job: actor.job,
        node: record.and_then(|record| record.node_of(actor.rank.unwrap_or(0))).map(str::to_owned),
        gpus: actor.gpus.as_f64(),
        sharing: sharing.map(|(word, _)| word),
        sharing_reason: sharing.and_then(|(_, why)| why.map(str::to_owned)),
        calls: has_all_calls.then_some(actor.calls),
        known_calls: actor.calls,
        holders: actor.holders,
    }
}

/// `{"application", "classes": […], "tasks": […]}`
#[derive(Debug, Serialize)]
pub(crate) struct TaskListDocument {
    application: JobId,
    classes: Vec<TaskClassDocument>,
    tasks: Vec<TaskDocument>,
    omitted: u64,
    silent: Vec<RankId>,
    silent_processes: Vec<SilentProcess>,
}

#[derive(Debug, Serialize)]
struct TaskClassDocument {
    gpus: f64,
    gpu_memory: Option<u64>,
    cpus: u32,
    memory: u64,
    wanted: u64,
    processes: Vec<TaskProcessDocument>,
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct TaskProcessDocument {
    job: Option<JobId>,
    state: TaskRunnerStage,
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct TaskDocument {
    task: String,
    caller: RankId,
    call: u64,
    depth: u32,
    class: Option<u32>,
    state: TaskStatus,
    reason: Option<String>,
    process: Option<RankId>,
    took_s: Option<f64>,
}

impl TaskListDocument {
    /// `records` are those of the jobs of silent processes.
    pub(crate) fn new(application: JobId, listing: &TaskListing, records: &[JobRecord]) -> TaskListDocument {
        TaskListDocument {
            application,
            classes: listing.classes.iter().map(TaskClassDocument::from).collect(),
            tasks: listing.tasks.iter().map(TaskDocument::from).collect(),
            omitted: listing.omitted,
            silent: listing.silent.clone(),
            silent_processes: silent_processes(&listing.silent, records),
        }
    }
}

impl From<&TaskClassRecord> for TaskClassDocument {
    fn from(class: &TaskClassRecord) -> TaskClassDocument {
        let process = |runner: &TaskRunnerRecord| TaskProcessDocument {
            job: runner.job,
            state: runner.state,
            reason: given(&runner.why),
        };
        TaskClassDocument {
            gpus: match class.demand.gpus {
                GpuRequest::Part(share) => share.as_f64(),
                GpuRequest::Whole(count) => count.into(),
            },
            gpu_memory: class.demand.gpu_memory.map(|memory| memory.0),
            cpus: class.demand.cpus,
            memory: class.demand.memory.0,
            wanted: class.wanted,
            processes: class.runners.iter().map(process).collect(),
            reason: given(&class.why),
        }
    }
}

impl From<&TaskRecord> for TaskDocument {
    fn from(task: &TaskRecord) -> TaskDocument {
        TaskDocument {
            task: task.name.clone(),
            caller: task.caller,
            call: task.call,
            depth: task.depth,
            class: task.class,
            state: task.state,
            reason: given(&task.why),
            process: task.runner,
            took_s: task.took.map(Span::as_secs_f64),
        }
    }
}

/// `{"application", "stores": […], "objects": […]}`
#[derive(Debug, Serialize)]
pub(crate) struct ObjectListDocument {
    application: JobId,
    stores: Vec<ObjectStoreDocument>,
    objects: Vec<ObjectDocument>,
    omitted: u64,
    silent: Vec<RankId>,
    silent_processes: Vec<SilentProcess>,
}

#[derive(Debug, Serialize)]
struct ObjectStoreDocument {
    process: RankId,
    node: String,
    memory: u64,
    disk: u64,
    budget: u64,
}

#[derive(Debug, Serialize)]
struct ObjectDocument {
    id: String,
    bytes: u64,
    store: RankId,
    node: String,
    place: ObjectLocation,
    holders: u32,
    mapped_by: Vec<RankId>,
}

impl ObjectListDocument {
    /// `records` are those of the jobs of silent stores.
    pub(crate) fn new(
        application: JobId,
        listing: &ObjectListing,
        records: &[JobRecord],
    ) -> ObjectListDocument {
        let stores = listing.stores.iter().map(|store| ObjectStoreDocument {
            process: store.member,
            node: store.node.clone(),
            memory: store.memory.0,
            disk: store.disk.0,
            budget: store.budget.0,
        });
        let objects = listing.objects.iter().map(|object| ObjectDocument {
            id: object.id.clone(),
            bytes: object.bytes.0,
            store: object.store,
            node: object.node.clone(),
            place: object.place,
            holders: object.holders,
            mapped_by: object.mapped_by.clone(),
        });
        ObjectListDocument {
            application,
            stores: stores.collect(),
            objects: objects.collect(),
            omitted: listing.omitted,
            silent: listing.silent.clone(),
            silent_processes: silent_processes(&listing.silent, records),
        }
    }
}

/// A reason, if there is one.
fn given(why: &str) -> Option<String> {
    (!why.is_empty()).then(|| why.to_owned())
}
