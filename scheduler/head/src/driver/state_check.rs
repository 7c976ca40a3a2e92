//! The check of the head's state: after recovery, and before each snapshot.
//!
//! A head whose state breaks an invariant keeps serving reads and handles what workers report. It refuses
//! changes, requests no plans, and takes no snapshot, so the last good one stays.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cohabit_scheduler_core::{BrokenInvariant, Head};
use cohabit_types::{Refusal, RefusalCode};

/// The result of the checks so far.
#[derive(Debug, Default)]
pub(crate) struct StateCheck {
    broken: Option<BrokenInvariant>,
}

impl StateCheck {
    /// Checks the head, and logs the first invariant that does not hold. A state that was broken once counts
    /// as broken until the head is restarted.
    pub(crate) fn passes(&mut self, head: &Head) -> bool {
        if self.broken.is_none()
            && let Err(broken) = head.check()
        {
            tracing::error!(
                %broken,
                "the head found its state broken: it serves reads, refuses changes, and takes no snapshots"
            );
            self.broken = Some(broken);
        }
        !self.is_broken()
    }

    /// Runs something that may assume that the invariants hold. If they do not and it panics, this logs so
    /// and returns none: the head goes on serving what it can.
    pub(crate) fn guard<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        if !self.is_broken() {
            return Some(run());
        }
        let result = catch_unwind(AssertUnwindSafe(run));
        result
            .inspect_err(|_| tracing::error!("an event or a question met the broken state: it is skipped"))
            .ok()
    }

    pub(crate) const fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Why changes are refused, if they are.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let broken = self.broken.as_ref()?;
        let message = format!(
            "the head found its state broken: {broken}. It keeps serving reads and does not overwrite its last \
             good snapshot; see 'A broken state' in docs/OPERATIONS.md"
        );
        Some(Refusal::new(RefusalCode::Internal, message))
    }
}
