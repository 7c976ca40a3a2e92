//! What is seen of a live application: what its coordinator tells the head, and the head its user.
//!
//! A user asks the head; the head asks the coordinator, which waits for questions, and passes its answer on.
//! Nothing of this is stored. Answers are bounded: at most [`MOST_LISTED`] tasks or objects, short texts.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Demand, JobId, RankId, Share, Span};

/// Most tasks, or objects, in one listing.
pub const MOST_LISTED: usize = 10_000;

/// Whose applications are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApplicationOwner {
    /// Those of the user who asks.
    Caller,
    /// Those of all users.
    Anyone,
}

/// What a coordinator can be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ApplicationTopic {
    /// Answered by an [`ActorListing`].
    Actors,
    /// Answered by a [`TaskListing`].
    Tasks,
    /// Answered by an [`ObjectListing`].
    Objects,
}

/// A question to the coordinator of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationQuestion {
    /// Names it in the answer; the head counts them.
    pub number: u64,
    /// What is asked.
    pub topic: ApplicationTopic,
}

/// The answer of a coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ApplicationAnswer {
    /// About actors.
    Actors(ActorListing),
    /// About tasks.
    Tasks(TaskListing),
    /// About objects.
    Objects(ObjectListing),
}

/// The actors of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorListing {
    /// In the order in which they were created; those that ended as long as somebody holds them.
    pub actors: Vec<ActorRecord>,
    /// How many more there are, all of which have ended.
    pub omitted: u64,
    /// Processes that did not say in time what they do.
    pub silent: Vec<RankId>,
}

/// An actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorRecord {
    /// Its number in its application.
    pub id: u64,
    /// The name of its type.
    pub kind: String,
    /// Its own name.
    pub name: Option<String>,
    /// Its rank in its gang, if it belongs to one.
    pub rank: Option<u32>,
    /// Whether it lives until it is stopped, instead of as long as somebody holds it.
    pub detached: bool,
    /// The GPUs that it claims.
    pub gpus: Share,
    /// Its state.
    pub state: ActorStage,
    /// What it waits for, why it cannot be reached, or why it ended; empty otherwise.
    pub why: String,
    /// How often it was constructed.
    pub incarnation: u32,
    /// The job of its process, as long as there is one.
    pub job: Option<JobId>,
    /// How many calls to it have not ended, of the processes that have said so.
    pub calls: u64,
    /// How many processes hold it.
    pub holders: u32,
}

/// The state of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ActorStage {
    /// The GPUs that the application may use are in use: it has no job yet.
    Queued,
    /// Its job waits.
    Pending,
    /// Its process starts, or it is constructed.
    Starting,
    /// It takes calls.
    Ready,
    /// Its process ended, and is started again.
    Restarting,
    /// Nothing is heard of the node of its process: it may run there, or have ended.
    Unreachable,
    /// It has ended for good.
    Ended,
}

/// The tasks of an application, and the processes that run them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskListing {
    /// By what they claim.
    pub classes: Vec<TaskClassRecord>,
    /// Those that run, then those that wait, then the last ones that have ended.
    pub tasks: Vec<TaskRecord>,
    /// How many more there are, or were.
    pub omitted: u64,
    /// Processes that did not say in time what they do: their tasks are missing.
    pub silent: Vec<RankId>,
}

/// The processes for tasks that claim the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskClassRecord {
    /// What each of them claims.
    pub demand: Demand,
    /// How many would have something to do.
    pub wanted: u64,
    /// Those whose jobs have not ended.
    pub runners: Vec<TaskRunnerRecord>,
    /// Why its tasks wait, if some do.
    pub why: String,
}

/// A process for tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRunnerRecord {
    /// Its job, once it was submitted.
    pub job: Option<JobId>,
    /// Its state.
    pub state: TaskRunnerStage,
    /// What it waits for; empty otherwise.
    pub why: String,
}

/// The state of a process for tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskRunnerStage {
    /// It takes no tasks yet.
    Pending,
    /// It takes tasks.
    Live,
    /// It takes no more tasks, and ends.
    Leaving,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// The name of its function.
    pub name: String,
    /// The process that has called it.
    pub caller: RankId,
    /// The number of the call in that process.
    pub call: u64,
    /// How many tasks called each other down to this one.
    pub depth: u32,
    /// Its class, as an index of the classes of its listing; none if it has ended.
    pub class: Option<u32>,
    /// Its state.
    pub state: TaskStatus,
    /// What it waits for besides a process of its class, or the text of its error; empty otherwise.
    pub why: String,
    /// The process that has it, or had it last.
    pub runner: Option<RankId>,
    /// How long its process worked on it, if it has ended and that is known.
    pub took: Option<Span>,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TaskStatus {
    /// It runs.
    Running,
    /// It has started, and waits for calls of its own.
    Parked,
    /// A process has it and has not started it.
    Sent,
    /// Its caller has it.
    Waiting,
    /// It returned a value, or all items of its stream.
    Returned,
    /// Its function returned an error, or it could not be called.
    Failed,
    /// Its function panicked.
    Panicked,
    /// Its process ended, and no retry was left.
    Lost,
    /// No process can run it.
    NoRunner,
    /// Nobody waited for it any more.
    Cancelled,
}

/// The objects of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectListing {
    /// Where they lie.
    pub stores: Vec<ObjectStoreRecord>,
    /// The largest first.
    pub objects: Vec<ObjectRecord>,
    /// How many more there are.
    pub omitted: u64,
    /// Stores that did not say in time what they have.
    pub silent: Vec<RankId>,
}

/// The store of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectStoreRecord {
    /// Its process.
    pub member: RankId,
    /// The name of its node.
    pub node: String,
    /// The bytes in memory.
    pub memory: Bytes,
    /// The bytes on disk.
    pub disk: Bytes,
    /// The bytes that may be in memory.
    pub budget: Bytes,
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRecord {
    /// Its name in its application.
    pub id: String,
    /// Its size.
    pub bytes: Bytes,
    /// The process of the store that has it. Further nodes may have copies, each of which is listed.
    pub store: RankId,
    /// The name of the node of that store.
    pub node: String,
    /// Where it lies there.
    pub place: ObjectLocation,
    /// How many processes hold it.
    pub holders: u32,
    /// The processes that read its memory.
    pub mapped_by: Vec<RankId>,
}

/// Where an object lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ObjectLocation {
    /// It is being made.
    Making,
    /// In memory.
    Memory,
    /// On disk.
    Disk,
}

impl ApplicationAnswer {
    /// The question that it answers.
    #[must_use]
    pub const fn topic(&self) -> ApplicationTopic {
        match self {
            ApplicationAnswer::Actors(_) => ApplicationTopic::Actors,
            ApplicationAnswer::Tasks(_) => ApplicationTopic::Tasks,
            ApplicationAnswer::Objects(_) => ApplicationTopic::Objects,
        }
    }
}

impl ApplicationTopic {
    /// What is asked about.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ApplicationTopic::Actors => "actors",
            ApplicationTopic::Tasks => "tasks",
            ApplicationTopic::Objects => "objects",
        }
    }
}

impl ActorListing {
    /// Whether all processes have said what calls they have made.
    #[must_use]
    pub const fn has_all_calls(&self) -> bool {
        self.silent.is_empty()
    }
}

impl ActorStage {
    /// In words, as in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ActorStage::Queued => "QUEUED",
            ActorStage::Pending => "PENDING",
            ActorStage::Starting => "STARTING",
            ActorStage::Ready => "READY",
            ActorStage::Restarting => "RESTARTING",
            ActorStage::Unreachable => "UNREACHABLE",
            ActorStage::Ended => "ENDED",
        }
    }
}

impl TaskRunnerStage {
    /// In words, as in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            TaskRunnerStage::Pending => "PENDING",
            TaskRunnerStage::Live => "LIVE",
            TaskRunnerStage::Leaving => "LEAVING",
        }
    }
}

impl TaskStatus {
    /// In words, as in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            TaskStatus::Running => "RUNNING",
            TaskStatus::Parked => "PARKED",
            TaskStatus::Sent => "SENT",
            TaskStatus::Waiting => "WAITING",
            TaskStatus::Returned => "RETURNED",
            TaskStatus::Failed => "FAILED",
            TaskStatus::Panicked => "PANICKED",
            TaskStatus::Lost => "LOST",
            TaskStatus::NoRunner => "NO_RUNNER",
            TaskStatus::Cancelled => "CANCELLED",
        }
    }
}

impl ObjectLocation {
    /// In words, as in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ObjectLocation::Making => "MAKING",
            ObjectLocation::Memory => "MEMORY",
            ObjectLocation::Disk => "DISK",
        }
    }
}

macro_rules! shown_as_word {
    ($($name:ty),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    )*};
}

shown_as_word!(ApplicationTopic, ActorStage, TaskRunnerStage, TaskStatus, ObjectLocation);

#[cfg(test)]
mod tests {
    use super::*;

    /// Words in tables are those in documents.
    #[test]
    fn states_are_shown_as_they_are_written_in_documents() {
        let check = |word: &str, document: serde_json::Value| assert_eq!(document, word);
        for state in [
            ActorStage::Queued,
            ActorStage::Pending,
            ActorStage::Starting,
            ActorStage::Ready,
            ActorStage::Restarting,
            ActorStage::Unreachable,
            ActorStage::Ended,
        ] {
            check(state.as_str(), serde_json::to_value(state).unwrap());
        }
        for state in [TaskRunnerStage::Pending, TaskRunnerStage::Live, TaskRunnerStage::Leaving] {
            check(state.as_str(), serde_json::to_value(state).unwrap());
        }
        for state in [
            TaskStatus::Running,
            TaskStatus::Parked,
            TaskStatus::Sent,
            TaskStatus::Waiting,
            TaskStatus::Returned,
            TaskStatus::Failed,
            TaskStatus::Panicked,
            TaskStatus::Lost,
            TaskStatus::NoRunner,
            TaskStatus::Cancelled,
        ] {
            check(state.as_str(), serde_json::to_value(state).unwrap());
        }
        for place in [ObjectLocation::Making, ObjectLocation::Memory, ObjectLocation::Disk] {
            check(place.as_str(), serde_json::to_value(place).unwrap());
        }
    }
}
