//! The tasks in a simulated process: those that it runs, and those that it has called.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_application_core::{CallNumber, HeldId, ObjectId, Ticket};
use cohabit_types::Time;

use super::payload::Tag;
use super::task_plan::TaskPlan;

/// A task that runs.
#[derive(Debug)]
pub(super) struct SimulatedTask {
    pub(super) tag: Tag,
    pub(super) plan: TaskPlan,
    pub(super) state: TaskState,
    pub(super) stage: TaskStage,
    /// Calls of it that have not ended.
    pub(super) open: BTreeSet<CallNumber>,
    /// The values of the tasks that it has called, by their number.
    pub(super) values: BTreeMap<usize, u64>,
    /// Why it will fail.
    pub(super) failure: Option<String>,
    pub(super) handles: Vec<HeldId>,
    /// The handles that are in its value if that is stored: the same in each run.
    pub(super) value_handles: Vec<HeldId>,
    pub(super) interrupted: bool,
    /// Items of its stream that it has made.
    pub(super) made: u64,
    /// Whether it had to wait when it was about to make the next one.
    pub(super) is_paused: bool,
    /// When it went on last.
    pub(super) went_on: Option<Time>,
}

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskState {
    Active,
    /// It waits for its calls, or until its stream is read, and the core has been told.
    Waiting,
    /// It waits for room in the store for its value.
    Storing,
    /// It computes and never ends.
    Stuck,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskStage {
    Begun,
    /// It has called all that it calls.
    Called,
}

/// A task that a process has called.
#[derive(Debug, Clone)]
pub(super) struct OpenTask {
    pub(super) tag: Tag,
    /// The running task that called it, and its number among the tasks that that one calls.
    pub(super) caller: Option<(Ticket, usize)>,
    /// The handles in its arguments.
    pub(super) carries: Vec<HeldId>,
    /// The references among them whose values it needs.
    pub(super) needs: Vec<ObjectId>,
}

impl SimulatedTask {
    pub(super) const fn new(tag: Tag, plan: TaskPlan) -> SimulatedTask {
        SimulatedTask {
            tag,
            plan,
            state: TaskState::Active,
            stage: TaskStage::Begun,
            open: BTreeSet::new(),
            values: BTreeMap::new(),
            failure: None,
            handles: Vec::new(),
            value_handles: Vec::new(),
            interrupted: false,
            made: 0,
            is_paused: false,
            went_on: None,
        }
    }

    /// Whether it takes the slot of its runner, as far as the core knew before this moment: one frame may end
    /// a call and bring a task.
    pub(super) fn is_active(&self, now: Time) -> bool {
        (self.state != TaskState::Waiting && self.went_on != Some(now)) || self.plan.has_gpus()
    }
}
