//! Which snapshots of code are needed, and by whom. The daemon stores them and asks before it gives one up.

use std::collections::BTreeSet;

use cohabit_types::{CodeSnapshot, ContentHash, JobId, NodeId};

use crate::head::Head;

impl Head {
    /// The manifests of the snapshots that jobs of this user need: of those that have not ended.
    #[must_use]
    pub fn code_in_use(&self, user: &str) -> BTreeSet<ContentHash> {
        let of_user = self.submissions.values().filter(|submission| submission.user == user);
        let live = of_user.filter(|submission| submission.end_state().is_none());
        live.filter_map(|submission| Some(submission.spec.code.as_ref()?.manifest)).collect()
    }

    /// The user and the snapshot of a job, if its attempt that runs has a part on this node.
    #[must_use]
    pub fn code_on(&self, node: NodeId, job: JobId) -> Option<(&str, &CodeSnapshot)> {
        let submission = self.submissions.get(&job.number)?;
        let attempt = self.jobs.get(&job)?.live_attempt()?;
        let is_there = attempt.live_nodes().into_iter().any(|it| it == node);
        Some((submission.user.as_str(), submission.spec.code.as_ref()?)).filter(|_| is_there)
    }
}
