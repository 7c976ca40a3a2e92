//! What the running tasks of a process wait for, and whether calls of theirs can go on.
//!
//! A call is *blocked* if it needs a runner with GPUs to take a task before it goes on: it has not started
//! and needs GPUs itself, or the task waits for nothing but blocked calls of its own. What it *needs* are the
//! classes of these runners. Calls without GPUs that have not started are not blocked: whatever runs in a
//! runner of theirs gives its place to the next one, and more of them can be started. A call that is held
//! back until references are known is blocked if all of these are calls of the same task: whatever it waits
//! for besides may fail, and then it ends.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{CallNumber, Ticket};
use crate::task_class::TaskClass;

/// What a running task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskWait {
    /// Tasks that it has called, or their references, and nothing else.
    Tasks,
    /// Something else, perhaps besides: calls of actors or of unknown callers, references that came from
    /// others, the store, or the reader of its stream.
    Others,
}

/// The blocked calls of all tasks of a process.
#[derive(Debug)]
pub(crate) struct BlockedCalls {
    callers: BTreeMap<Ticket, CallerNeeds>,
    /// Calls that are held back.
    held_back: BTreeMap<Ticket, BTreeSet<CallNumber>>,
    changes: WaitChanges,
}

/// The running tasks whose calls have changed.
#[derive(Debug, Default)]
pub(crate) struct WaitChanges {
    pub(crate) tasks: BTreeSet<Ticket>,
    /// Those of them of which a call has ended: they go on, until they say again that they wait.
    pub(crate) woken: BTreeSet<Ticket>,
}

/// The blocked calls of one task.
#[derive(Debug, Default)]
struct CallerNeeds {
    blocked: usize,
    /// How many of them need a runner of the class.
    classes: BTreeMap<TaskClass, usize>,
}

/// A call of a task needs something else than before.
#[derive(Debug)]
pub(crate) struct NeedsChange {
    pub(crate) caller: Ticket,
    pub(crate) before: Vec<TaskClass>,
    pub(crate) after: Vec<TaskClass>,
}

impl BlockedCalls {
    pub(crate) const fn new() -> BlockedCalls {
        let changes = WaitChanges { tasks: BTreeSet::new(), woken: BTreeSet::new() };
        BlockedCalls { callers: BTreeMap::new(), held_back: BTreeMap::new(), changes }
    }

    /// A task has called another one.
    pub(crate) fn called(&mut self, caller: Ticket) {
        if self.callers.contains_key(&caller) {
            self.changes.tasks.insert(caller);
        }
    }

    /// A task has called another one, which needs what is not known yet.
    pub(crate) fn hold_back(&mut self, caller: Ticket, call: CallNumber) {
        self.held_back.entry(caller).or_default().insert(call);
        self.called(caller);
    }

    /// A call is held back no longer.
    pub(crate) fn admit(&mut self, caller: Ticket, call: CallNumber) {
        if let Some(held_back) = self.held_back.get_mut(&caller) {
            held_back.remove(&call);
            if held_back.is_empty() {
                self.held_back.remove(&caller);
            }
        }
    }

    /// A call of a task has ended.
    pub(crate) fn ended(&mut self, caller: Ticket) {
        self.changes.woken.insert(caller);
    }

    pub(crate) fn change(&mut self, NeedsChange { caller, before, after }: NeedsChange) {
        self.changes.tasks.insert(caller);
        let needs = self.callers.entry(caller).or_default();
        needs.blocked -= usize::from(!before.is_empty());
        needs.blocked += usize::from(!after.is_empty());
        for class in before {
            if let Some(count) = needs.classes.get_mut(&class) {
                *count -= 1;
                if *count == 0 {
                    needs.classes.remove(&class);
                }
            }
        }
        for class in after {
            *needs.classes.entry(class).or_insert(0) += 1;
        }
        if needs.blocked == 0 {
            self.callers.remove(&caller);
        }
    }

    /// What a task needs that waits for its unended calls, of which there are so many.
    pub(crate) fn needs(
        &self,
        caller: Ticket,
        unended: usize,
        waits_behind: impl Fn(CallNumber) -> bool,
    ) -> Vec<TaskClass> {
        let none = BTreeSet::new();
        let held_back = self.held_back.get(&caller).unwrap_or(&none);
        let are_all = |needs: &&CallerNeeds| {
            needs.blocked + held_back.len() == unended && held_back.iter().all(|call| waits_behind(*call))
        };
        let all = self.callers.get(&caller).filter(are_all);
        all.map(|needs| needs.classes.keys().cloned().collect()).unwrap_or_default()
    }

    /// The tasks whose calls have changed since this was asked before.
    pub(crate) fn take_changes(&mut self) -> WaitChanges {
        std::mem::take(&mut self.changes)
    }
}
