//! Checkpoints that another node keeps: the ranks of an attempt wait until they are here, or until it is
//! clear that they cannot be had. Then the ranks start without them, and their user is told.

use cohabit_types::{AttemptId, RankId, Report};

use crate::interface::{FetchedCheckpoints, RankStart, WorkerEffect};
use crate::rank::RankState;
use crate::state::{CheckpointState, Worker};

impl Worker {
    /// Orders the checkpoints for the attempt of this rank, if they are on another node.
    pub(crate) fn fetch_checkpoints(&mut self, start: RankStart, out: &mut Vec<WorkerEffect>) {
        if let Some(source) = start.checkpoints.clone() {
            self.checkpoints.insert(start.rank.attempt, CheckpointState::Fetching(source));
            out.push(WorkerEffect::FetchCheckpoints(Box::new(start)));
        }
    }

    pub(crate) fn awaits_checkpoints(&self, rank: RankId) -> bool {
        matches!(self.checkpoints.get(&rank.attempt), Some(CheckpointState::Fetching(_)))
    }

    pub(crate) fn checkpoints_fetched(
        &mut self,
        attempt: AttemptId,
        fetched: FetchedCheckpoints,
        out: &mut Vec<WorkerEffect>,
    ) {
        let Some(CheckpointState::Fetching(source)) = self.checkpoints.remove(&attempt) else { return };
        if let Some(result) = fetched.result {
            self.checkpoints.insert(attempt, CheckpointState::Known(source, result));
            self.report_checkpoints(attempt, out);
        }
        // One of its ranks tells the user.
        let first = self.ranks.range_mut(attempt.rank(0)..=attempt.rank(u32::MAX)).next();
        if let Some((_, held)) = first
            && let RankState::Waiting(start) = &mut held.state
        {
            start.note = fetched.note;
        }
    }

    /// Tells the head what came of the checkpoints of this attempt, if it is known.
    pub(crate) fn report_checkpoints(&self, attempt: AttemptId, out: &mut Vec<WorkerEffect>) {
        if let Some(CheckpointState::Known(source, result)) = self.checkpoints.get(&attempt) {
            let (source, result) = (source.clone(), result.clone());
            self.report(Some(Report::Checkpoints { attempt, source, result }), out);
        }
    }
}
