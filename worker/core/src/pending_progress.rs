//! Which progress the head does not know yet, and when to report it: at most once in a heartbeat.
//!
//! The progress itself stays with its rank.

use std::collections::BTreeSet;

use cohabit_types::{AttemptId, Span, Time};

/// The attempts whose progress the head does not know yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingProgress {
    heartbeat: Span,
    changed: BTreeSet<AttemptId>,
    next_at: Time,
}

impl PendingProgress {
    pub(crate) const fn new(heartbeat: Span) -> PendingProgress {
        PendingProgress { heartbeat, changed: BTreeSet::new(), next_at: Time::EPOCH }
    }

    pub(crate) fn changed(&mut self, attempt: AttemptId) {
        self.changed.insert(attempt);
    }

    /// When the next batch is due, if there is anything to report.
    pub(crate) fn deadline(&self) -> Option<Time> {
        (!self.changed.is_empty()).then_some(self.next_at)
    }

    /// The attempts to report now, if it is time.
    pub(crate) fn take(&mut self, now: Time) -> BTreeSet<AttemptId> {
        if self.deadline().is_none_or(|due_at| due_at > now) {
            return BTreeSet::new();
        }
        self.next_at = now + self.heartbeat;
        std::mem::take(&mut self.changed)
    }
}
