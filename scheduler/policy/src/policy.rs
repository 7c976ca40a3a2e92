//! The trait of all policies.

use std::sync::Arc;

use cohabit_types::Span;

use crate::interference::InterferenceContext;
use crate::maifs::Agents;
use crate::{
    FreeNodes, JobFeatures, PendingJob, PendingReason, Plan, Proposal, SensitivityProfiles, Shortage, View,
    ViewChange,
};

/// A job that ended, in whatever way.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedRun {
    /// What was known of it at submission.
    pub features: JobFeatures,
    /// How long it worked: see [`crate::work_time`].
    pub worked: Span,
    /// The work time that was estimated at its submission.
    pub estimated: Option<Span>,
}

/// Decides which job starts when and where.
///
/// A policy may keep state of its own, built from the changes that it gets; that state is never saved. After
/// a restart of the head a new policy gets everything that is alive as changes, and those must be enough to
/// continue.
pub trait Policy: Send {
    /// Updates the policy's state by these changes, in order; the view contains them already.
    fn learn(&mut self, view: &View, changes: &[ViewChange]);

    /// Plans for a view whose changes the policy was told. The answer must depend on nothing but views and
    /// changes.
    fn plan(&mut self, view: &View) -> Plan;

    /// Why each pending job waits, in the order in which the jobs may start. The policy was told all changes
    /// of the view.
    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason>;

    /// Where a job would go if it were its turn now: a pending job, or one that is not submitted and leaves
    /// no trace.
    ///
    /// # Errors
    /// The resource that is short.
    fn dry_run(&mut self, view: &View, job: &PendingJob) -> Result<Proposal, Shortage> {
        self.dry_run_on(view, job, &FreeNodes::new(&view.nodes))
    }

    /// The same if so much of the nodes of the view were free.
    ///
    /// # Errors
    /// The resource that is short.
    fn dry_run_on(
        &mut self,
        view: &View,
        job: &PendingJob,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage>;

    /// Learns from jobs that ended before the policy was created, in the order of their ends. It comes before
    /// the first changes, and only helps: a policy must plan without it.
    fn recall(&mut self, ended: &[EndedRun]) {
        let _ = ended;
    }

    /// Uses these tables of how much cores and host memory speed jobs up, if the policy uses any. It comes
    /// before the first changes.
    fn set_sensitivity(&mut self, profiles: &Arc<SensitivityProfiles>) {
        let _ = profiles;
    }

    /// Lets these agents decide, if the policy is decided by agents. It comes before the first changes.
    fn set_agents(&mut self, agents: Box<dyn Agents>) {
        drop(agents);
    }

    /// Uses this knowledge of interference from now on, if the policy uses any. Plans may depend on it.
    fn set_interference(&mut self, context: &InterferenceContext) {
        let _ = context;
    }
}
