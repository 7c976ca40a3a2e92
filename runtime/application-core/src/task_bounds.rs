//! How many tasks a caller may have that have not ended, and how large their arguments may be together.
//!
//! The bound is for each running task and not for each process: a parent whose calls reach the bound does
//! not keep its children, which may run in the same process, from calling.

use std::collections::BTreeMap;

use crate::ids::Ticket;
use crate::limits::{MAX_TASK_BYTES, MAX_TASKS};

/// The tasks of all callers of a process.
#[derive(Debug)]
pub(crate) struct TaskBounds {
    callers: BTreeMap<Option<Ticket>, UnendedTasks>,
}

#[derive(Debug, Default)]
struct UnendedTasks {
    tasks: usize,
    bytes: usize,
}

impl TaskBounds {
    pub(crate) const fn new() -> TaskBounds {
        TaskBounds { callers: BTreeMap::new() }
    }

    /// Whether the caller may have one more task with arguments of this size.
    pub(crate) fn has_room(&self, caller: Option<Ticket>, bytes: usize) -> bool {
        self.callers.get(&caller).is_none_or(|unended| {
            unended.tasks < MAX_TASKS && unended.bytes.saturating_add(bytes) <= MAX_TASK_BYTES
        })
    }

    /// Number of tasks of the caller that have not ended.
    pub(crate) fn unended(&self, caller: Option<Ticket>) -> usize {
        self.callers.get(&caller).map_or(0, |unended| unended.tasks)
    }

    pub(crate) fn add(&mut self, caller: Option<Ticket>, bytes: usize) {
        let unended = self.callers.entry(caller).or_default();
        unended.tasks += 1;
        unended.bytes += bytes;
    }

    pub(crate) fn remove(&mut self, caller: Option<Ticket>, bytes: usize) {
        if let Some(unended) = self.callers.get_mut(&caller) {
            unended.tasks -= 1;
            unended.bytes -= bytes;
            if unended.tasks == 0 {
                self.callers.remove(&caller);
            }
        }
    }
}
