//! The trait of all policies.

use crate::interference::InterferenceContext;
use crate::{PendingJob, PendingReason, Plan, Proposal, Shortage, View, ViewChange};

/// Decides which job starts when and where.
///
/// A policy may keep books of its own, led by the changes it is told; they are never saved. After a restart
/// of the head a new policy is told of everything that lives as changes, so those must be enough to go on.
pub trait Policy: Send {
    /// Takes note of changes, in their order; they are in the view already.
    fn learn(&mut self, view: &View, changes: &[ViewChange]);

    /// Answers a view, all changes of which it was told. Must not depend on anything but the views and
    /// changes it was given.
    fn plan(&mut self, view: &View) -> Plan;

    /// What the pending jobs of a view have to expect, all changes of which it was told, in the order in
    /// which they may start.
    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason>;

    /// Where a job would go if its turn were now: one that waits, or one that is only thought of, of which
    /// nothing is kept.
    ///
    /// # Errors
    /// Why it would have to wait for a place.
    fn consider(&mut self, view: &View, job: &PendingJob) -> Result<Proposal, Shortage>;

    /// Whether plans depend on what [`set_interference`](Self::set_interference) sets.
    fn uses_interference(&self) -> bool {
        false
    }

    /// Goes by this knowledge of interference from now on, if it goes by any. Plans may depend on it too.
    fn set_interference(&mut self, knowledge: &InterferenceContext) {
        let _ = knowledge;
    }
}
