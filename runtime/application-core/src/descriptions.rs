//! What the coordinator and its members say of themselves when somebody looks at the application.
//!
//! Everything is bounded by [`MAX_DESCRIBED_TASKS`](crate::MAX_DESCRIBED_TASKS) and by the limits of an
//! application. Functions and types are numbers of the registry: shells know their names.

use std::collections::BTreeMap;

use cohabit_types::{JobId, RankId, Rendezvous, Share, Span};
use serde::{Deserialize, Serialize};

use crate::actor_spec::{ActorState, Lifetime};
use crate::ids::{ActorId, CallNumber, NodeNumber, ObjectId, TaskRunnerNumber};
use crate::task_class::TaskClass;

/// The application, as its coordinator knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplicationDescription {
    /// In the order in which they were created.
    pub actors: Vec<ActorDescription>,
    /// Runners of tasks, by what they claim.
    pub classes: Vec<ClassDescription>,
    /// How many processes hold an object.
    pub object_holders: BTreeMap<ObjectId, u32>,
    /// The nodes that have each stored object.
    pub object_places: BTreeMap<ObjectId, Vec<NodeNumber>>,
    /// The nodes on which processes run, or have run, by number.
    pub nodes: Vec<NodeDescription>,
}

/// A node on which processes of the application run, or have run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDescription {
    /// The node.
    pub node: NodeNumber,
    /// Its name at the head.
    pub name: String,
    /// Where its processes are reached by those of other nodes.
    pub at: Option<Rendezvous>,
    /// The job of its store, where that is a process of its own.
    pub store: Option<JobId>,
    /// Whether its store lives, and others reach its processes.
    pub is_served: bool,
}

/// An actor that somebody holds, or whose process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorDescription {
    /// The actor.
    pub actor: ActorId,
    /// Index of its type in the registry of the binary.
    pub kind: u32,
    /// Its name.
    pub name: Option<String>,
    /// Its rank, if it belongs to a gang.
    pub rank: Option<u32>,
    /// Whether it outlives its handles.
    pub lifetime: Lifetime,
    /// The GPUs that it claims.
    pub gpus: Share,
    /// What its callers see.
    pub state: ActorState,
    /// Whether the ceiling of the application keeps it waiting.
    pub wait: ActorWait,
    /// How often it was constructed.
    pub incarnation: u32,
    /// The job of its process, as long as there is one.
    pub job: Option<JobId>,
    /// The node of its process, once that has connected.
    pub node: Option<NodeNumber>,
    /// How many processes hold it. The coordinator is one of them as long as it constructs something with it.
    pub holders: u32,
}

/// What a pending actor waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActorWait {
    /// The head, or nothing.
    Other,
    /// The GPUs that the application may use are in use.
    Ceiling,
}

/// The runners of tasks that claim the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassDescription {
    /// What each of them claims.
    pub class: TaskClass,
    /// How many would have something to do.
    pub wanted: u64,
    /// Those whose jobs have not ended.
    pub runners: Vec<RunnerDescription>,
}

/// A runner of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerDescription {
    /// The runner.
    pub runner: TaskRunnerNumber,
    /// Its job, once the head has answered its submission.
    pub job: Option<JobId>,
    /// The node of its process, once that takes tasks.
    pub node: Option<NodeNumber>,
    /// What it does.
    pub state: RunnerCondition,
}

/// What a runner of tasks does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerCondition {
    /// It takes no tasks yet.
    Pending {
        /// Why, as the head or the coordinator says.
        why: String,
    },
    /// It takes tasks.
    Live {
        /// Its process.
        member: RankId,
    },
    /// It takes no more tasks, and ends.
    Leaving,
}

/// What a member is asked to describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MemberTopic {
    /// How many calls to actors it has made that have not ended.
    Calls,
    /// Its tasks.
    Tasks,
}

/// A member, as far as it was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberDescription {
    /// The actors to which it has made calls that have not ended, with their number.
    pub calls: Vec<(ActorId, u32)>,
    /// The tasks that it has called and that have not ended.
    pub called: Vec<CalledTasks>,
    /// The tasks that it has started, as a process of tasks.
    pub started: Vec<StartedTaskDescription>,
    /// The last of the tasks that it has called that have ended, the newest first.
    pub ended: Vec<EndedTaskDescription>,
    /// How many tasks are left out.
    pub omitted: u64,
}

/// The tasks of one class that a process has called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalledTasks {
    /// The class.
    pub class: TaskClass,
    /// In the order of their calls.
    pub tasks: Vec<TaskDescription>,
}

/// A task that has not ended, as its caller knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDescription {
    /// The call.
    pub call: CallNumber,
    /// Index of the function in the registry of the binary.
    pub function: u32,
    /// How many tasks called each other down to this one.
    pub depth: u32,
    /// Where it is.
    pub place: TaskPlace,
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskPlace {
    /// With its caller, until a runner takes it.
    Waiting,
    /// With its caller, until the values are known that it needs.
    Dependent,
    /// At a runner, which may have started it.
    Sent {
        /// The runner.
        runner: RankId,
    },
    /// At a runner, where it waits for calls of its own.
    Parked {
        /// The runner.
        runner: RankId,
    },
}

/// A task that has started, as its runner knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedTaskDescription {
    /// Who has called it.
    pub caller: RankId,
    /// The call.
    pub call: CallNumber,
}

/// A task that has ended, as its caller knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTaskDescription {
    /// The call.
    pub call: CallNumber,
    /// Index of the function in the registry of the binary.
    pub function: u32,
    /// How many tasks called each other down to this one.
    pub depth: u32,
    /// How it ended.
    pub outcome: TaskOutcome,
    /// The text of its error, shortened; empty without.
    pub text: String,
    /// The runner that had it last.
    pub runner: Option<RankId>,
    /// How long the runner worked on it, if one answered.
    pub took: Option<Span>,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskOutcome {
    /// It returned a value, or all items of its stream.
    Returned,
    /// Its function returned an error, or it could not be called.
    Failed,
    /// Its function panicked.
    Panicked,
    /// Its runner ended, and no retry was left.
    Lost,
    /// No process can run it.
    NoRunner,
    /// Nobody waited for it any more.
    Cancelled,
}
