//! What a task needs: where it can run, and how often.

use bytes::Bytes;
use cohabit_types::Share;
use serde::{Deserialize, Serialize};

use crate::held::HeldId;
use crate::ids::{ObjectId, Ticket};

/// Which runners can run a task: those whose jobs claim exactly this.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskClass {
    /// The GPUs that the runner claims, in thousandths.
    pub gpus: Share,
    /// Everything else that its job claims, encoded by the shell; the cores pass it through.
    pub claims: Bytes,
}

impl TaskClass {
    /// Whether a task that waits for calls of its own lets others run beside it: cores are given back, GPUs
    /// are not.
    #[must_use]
    pub const fn is_given_back(&self) -> bool {
        self.gpus.0 == 0
    }
}

/// A task to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSpec {
    /// Where it can run.
    pub class: TaskClass,
    /// Index of the function in the registry of the binary.
    pub function: u32,
    /// The running task of this process that calls it; none if a main, an actor or something unknown does.
    pub caller: Option<Ticket>,
    /// How often it is sent again after the end of a process that had got it.
    pub retries: u32,
    /// Whether errors and panics of the function are tried again, too.
    pub on_error: OnTaskError,
    /// Encoded arguments.
    pub arguments: Bytes,
    /// References in the arguments whose values the function gets: it is sent when they are known.
    pub needs: Vec<ObjectId>,
    /// The handles in the arguments, once for each, those of `needs` among them.
    pub carries: Vec<HeldId>,
}

/// What happens to a task whose function fails or panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTaskError {
    /// Its caller gets the error.
    Fail,
    /// It is run again as long as retries are left.
    Retry,
}
