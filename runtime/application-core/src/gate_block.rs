//! The runner of a class with GPUs while the task that runs there is blocked: it keeps its GPUs, so nothing
//! else starts.

use std::collections::BTreeSet;

use cohabit_types::RankId;

use crate::task_class::TaskClass;
use crate::task_gate::TaskGateEffect;

/// What others know of it.
#[derive(Debug)]
pub(crate) struct GateBlock {
    pub(crate) class: TaskClass,
    /// What the coordinator was told that the running task needs.
    reported: Vec<TaskClass>,
    /// Whether it is told in any case.
    repeats: bool,
    /// The callers that were told to send nothing.
    paused: BTreeSet<RankId>,
}

/// Whether the runner begins to send everything back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PauseChange {
    Begins,
    None,
}

impl GateBlock {
    pub(crate) const fn new(class: TaskClass) -> GateBlock {
        GateBlock { class, reported: Vec::new(), repeats: false, paused: BTreeSet::new() }
    }

    /// The next report is made although nothing in it is new.
    pub(crate) const fn repeat(&mut self) {
        self.repeats = true;
    }

    /// The running task needs this.
    pub(crate) fn report(&mut self, needs: &[TaskClass], effects: &mut Vec<TaskGateEffect>) -> PauseChange {
        if !std::mem::take(&mut self.repeats) && self.reported == needs {
            return PauseChange::None;
        }
        effects.push(TaskGateEffect::Report { needs: needs.to_vec() });
        let was_blocked = !self.reported.is_empty();
        self.reported = needs.to_vec();
        if needs.is_empty() {
            let resumed = std::mem::take(&mut self.paused).into_iter();
            effects.extend(resumed.map(|caller| TaskGateEffect::Resume { caller }));
        }
        if was_blocked || needs.is_empty() { PauseChange::None } else { PauseChange::Begins }
    }

    /// Callers whose tasks are here are to send nothing.
    pub(crate) fn pause(&mut self, callers: impl Iterator<Item = RankId>, effects: &mut Vec<TaskGateEffect>) {
        for caller in callers {
            if self.paused.insert(caller) {
                effects.push(TaskGateEffect::Pause { caller });
            }
        }
    }

    /// A task has come: whether it goes back, and what its caller is told before.
    pub(crate) fn send_back(&mut self, caller: RankId) -> Option<Option<TaskGateEffect>> {
        if self.reported.is_empty() {
            return None;
        }
        Some(self.paused.insert(caller).then_some(TaskGateEffect::Pause { caller }))
    }

    /// A caller has ended.
    pub(crate) fn forget(&mut self, caller: RankId) {
        self.paused.remove(&caller);
    }
}
