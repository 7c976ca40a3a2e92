//! Why a call failed, why an actor ended, why an actor was not created.

use cohabit_types::{Share, Span};
use serde::{Deserialize, Serialize};

use crate::held::HeldId;
use crate::limits::{MAX_ACTORS, MAX_ARGUMENTS, MAX_CALLS, MAX_NAME};

/// Why a call has no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum CallError {
    /// The method returned an error: its text, with causes.
    #[error("{0}")]
    Failed(String),
    /// The method panicked: its message. The actor is constructed again in its process.
    #[error("the method panicked: {0}")]
    Panicked(String),
    /// The process of the actor ended after the call was handed over to it.
    #[error(
        "the process of the actor ended during the call; whether the method ran is unknown: make it safe to run \
         twice and mark it #[retry]"
    )]
    Restarted,
    /// The actor has ended and does not come back.
    #[error("{0}")]
    Ended(#[from] ActorEnd),
    /// The process that ran the task ended, and no retry is left.
    #[error("the process of the task ended {ends} times, which its retries do not allow: {text}")]
    Lost {
        /// How many processes ended that had got the task.
        ends: u32,
        /// What is known of it, and what to do.
        text: String,
    },
    /// No process can run the task: what the head or the coordinator says.
    #[error("no process can run the task: {0}")]
    NoRunner(String),
    /// The task would wait for ever for GPUs that waiting tasks of its own application hold: the demand, and
    /// what to do.
    #[error("{0}")]
    Deadlock(String),
    /// An argument is the value of a call that failed: its error.
    #[error("an argument is missing: {0}")]
    Dependency(String),
    /// The time that the caller gave it is over.
    #[error("the call did not end within {0}")]
    TimedOut(Span),
    /// The caller cancelled the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The queue of this process to this actor is full.
    #[error(
        "{MAX_CALLS} calls of this process to the actor have not ended: await some of them before the next call"
    )]
    Full,
    /// The call may not be made.
    #[error("{0}")]
    Refused(String),
    /// The node has no room for an object: what fills it, and what to do.
    #[error("no room for an object: {0}")]
    StoreFull(String),
    /// An object cannot be read any more: why.
    #[error("an object is lost: {0}")]
    ObjectLost(String),
}

impl CallError {
    /// How a call ends that needs the value of one which ended like this: the first error of a chain is what
    /// matters.
    #[must_use]
    pub fn of_argument(&self) -> CallError {
        if matches!(self, CallError::Dependency(_)) {
            return self.clone();
        }
        CallError::Dependency(self.to_string())
    }
}

/// Why an actor ended for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ActorEnd {
    /// It was stopped.
    #[error("the actor was stopped: create another one")]
    Stopped,
    /// Its constructor returned an error or panicked: the text.
    #[error("the constructor of the actor failed: {0}")]
    ConstructorFailed(String),
    /// Its process ended more often than it may be restarted, or was never started: what the head says.
    #[error("the actor was given up: {0}")]
    GivenUp(String),
}

/// Why an actor was not created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum CreateError {
    /// A live actor has the name.
    #[error(
        "an actor named '{name}' lives, or is created together with another one of this name: find it by \
             its name, stop it, or choose another name"
    )]
    NameInUse {
        /// The name.
        name: String,
    },
    /// There is nothing to create.
    #[error("a gang has at least one member: give their number, such as Gang::of(4)")]
    EmptyGang,
    /// The name is empty or too long.
    #[error("the name of an actor has 1 to {MAX_NAME} bytes, this one has {bytes}: choose another name")]
    NameLength {
        /// Its length in bytes.
        bytes: usize,
    },
    /// Nobody could ever find the actor again.
    #[error("a detached actor needs a name, or nobody can find it again: add .name(\"...\")")]
    DetachedWithoutName,
    /// The arguments are too large.
    #[error(
        "arguments of {bytes} bytes; the constructors of a job take at most {MAX_ARGUMENTS}: put what is large, \
         and pass the reference"
    )]
    ArgumentsTooLarge {
        /// Their size in bytes.
        bytes: usize,
    },
    /// The actor, or its gang, alone needs more than the application may use.
    #[error("the actor needs {gpus} GPUs and the application may use {max_gpus}: raise max_gpus of main")]
    AboveCeiling {
        /// What it needs.
        gpus: Share,
        /// The ceiling of the application.
        max_gpus: Share,
    },
    /// There are too many actors.
    #[error("{MAX_ACTORS} actors of the application live: drop or stop some before creating more")]
    TooManyActors,
    /// The arguments name something that the process does not hold.
    #[error("the arguments contain a handle of {0}, which this process does not hold")]
    UnknownHandle(HeldId),
}
