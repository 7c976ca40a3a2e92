//! Where the checkpoints of a job are that its workers keep: with the nodes of the latest attempt that ran.
//!
//! Each node of an attempt keeps what its ranks saved, so the node with the same number in the next attempt
//! needs it. A job that names a directory has none: that directory is its user's, or shared by all nodes.

use cohabit_types::{AttemptId, CheckpointSource, JobId, NodeId, Outcome};

use crate::head::Head;
use crate::job::{Attempt, RankPhase};

impl Head {
    /// Where the checkpoints are that an attempt needs on this node, which has this number in it; none if
    /// there are none, or they are on this node.
    pub(crate) fn checkpoint_source(
        &self,
        job: JobId,
        node: NodeId,
        node_rank: usize,
    ) -> Option<CheckpointSource> {
        self.located_checkpoints(job, node, node_rank).map(|(source, _)| source)
    }

    /// The same for a live attempt that has a part on this node under this number, with the node that keeps
    /// them.
    #[must_use]
    pub fn checkpoints_for(
        &self,
        node: NodeId,
        attempt: AttemptId,
        node_rank: u32,
    ) -> Option<(CheckpointSource, NodeId)> {
        let live = self.jobs.get(&attempt.job)?.live_attempt().filter(|it| it.number == attempt.attempt)?;
        let part = live.placement.parts.get(node_rank as usize)?;
        (part.node == node).then(|| self.located_checkpoints(attempt.job, node, node_rank as usize)).flatten()
    }

    fn located_checkpoints(
        &self,
        job: JobId,
        node: NodeId,
        node_rank: usize,
    ) -> Option<(CheckpointSource, NodeId)> {
        if self.submissions.get(&job.number)?.spec.checkpoint.is_some() {
            return None;
        }
        let ended = &self.jobs.get(&job)?.ended_attempts;
        let attempt = &ended.iter().rev().find(|ended| has_run(&ended.attempt))?.attempt;
        let keeper = attempt.placement.parts.get(node_rank)?.node;
        let name = &attempt.ranks.iter().find(|rank| rank.node == keeper)?.node_name;
        let source = CheckpointSource { attempt: attempt.number, node: name.clone() };
        (keeper != node).then_some((source, keeper))
    }
}

/// Whether a rank of an attempt has run, so that it may have saved something.
fn has_run(attempt: &Attempt) -> bool {
    attempt.ranks.iter().any(|rank| match &rank.phase {
        RankPhase::Ordered => false,
        RankPhase::Running => true,
        RankPhase::Ended(outcome) => !matches!(outcome, Outcome::NotStarted(_)),
    })
}
