//! Questions whether tasks of this process are still blocked, as long as they have no answer.
//!
//! The coordinator takes no report for granted, since a word that changes it may be under way. It asks again,
//! and the question goes down the tree of a task to all calls that it waits for. Frames of a session arrive
//! in order: an answer says that nothing has changed since the last word on the task.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{CallNumber, Ticket};

/// The questions, by task.
#[derive(Debug)]
pub(crate) struct TaskProbes {
    open: BTreeMap<Ticket, OpenProbe>,
    /// Tasks below which a call was told to fail. That call may have moved on meanwhile.
    told: BTreeSet<Ticket>,
}

#[derive(Debug)]
struct OpenProbe {
    number: u64,
    askers: BTreeSet<ProbeAsker>,
    /// The calls of the task whose runners have not answered.
    calls: BTreeSet<CallNumber>,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProbeAsker {
    /// About the task that runs in this process.
    Coordinator,
    /// The caller of the task.
    Caller,
}

/// The answer to a question can be given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AnsweredProbe {
    pub(crate) task: Ticket,
    pub(crate) number: u64,
    pub(crate) askers: BTreeSet<ProbeAsker>,
}

impl TaskProbes {
    pub(crate) const fn new() -> TaskProbes {
        TaskProbes { open: BTreeMap::new(), told: BTreeSet::new() }
    }

    /// Somebody asks about a task. Whether its calls have to be asked about, too.
    pub(crate) fn ask(&mut self, task: Ticket, number: u64, asker: ProbeAsker) -> bool {
        let known = self.open.get_mut(&task).filter(|it| it.number >= number);
        if let Some(known) = known {
            if known.number == number {
                known.askers.insert(asker);
            }
            return false;
        }
        let probe = OpenProbe { number, askers: BTreeSet::from([asker]), calls: BTreeSet::new() };
        self.open.insert(task, probe);
        true
    }

    /// The answer follows from those about these calls.
    pub(crate) fn await_calls(
        &mut self,
        task: Ticket,
        calls: impl IntoIterator<Item = CallNumber>,
    ) -> Option<AnsweredProbe> {
        self.open.get_mut(&task)?.calls.extend(calls);
        self.take_answered(task)
    }

    /// The runner of a call has answered.
    pub(crate) fn call_answered(&mut self, call: CallNumber, number: u64) -> Option<AnsweredProbe> {
        let asked = |it: &OpenProbe| it.number == number && it.calls.contains(&call);
        let (task, open) = self.open.iter_mut().find(|(_, it)| asked(it))?;
        open.calls.remove(&call);
        let task = *task;
        self.take_answered(task)
    }

    /// The tasks whose questions have no answer yet because of one of these calls.
    pub(crate) fn awaiting(&self, is_one: impl Fn(CallNumber) -> bool) -> Vec<Ticket> {
        let awaits = |open: &OpenProbe| open.calls.iter().any(|call| is_one(*call));
        self.open.iter().filter(|(_, open)| awaits(open)).map(|(task, _)| *task).collect()
    }

    /// A call of a task, or one below it, was told to fail.
    pub(crate) fn tell(&mut self, task: Ticket) {
        self.told.insert(task);
    }

    /// Nobody may rely on what was said of a task. Whether somebody does: has asked, or has told it that it
    /// goes on.
    pub(crate) fn abort(&mut self, task: Ticket) -> bool {
        let was_asked = self.open.remove(&task).is_some();
        self.told.remove(&task) || was_asked
    }

    fn take_answered(&mut self, task: Ticket) -> Option<AnsweredProbe> {
        if !self.open.get(&task)?.calls.is_empty() {
            return None;
        }
        let OpenProbe { number, askers, .. } = self.open.remove(&task)?;
        Some(AnsweredProbe { task, number, askers })
    }
}
