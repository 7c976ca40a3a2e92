//! Worker daemons fetch checkpoints that another worker keeps: it takes a while, and needs the head and the
//! link of that worker.

use cohabit_types::{AttemptId, Bytes, CheckpointResult, Span};
use cohabit_worker_core::{FetchedCheckpoints, RankStart, WorkerEvent};

use super::World;
use crate::failure::SimFailure;
use crate::sim_event::{DaemonSimEvent, SimEvent};

/// How long it takes to carry checkpoints.
const CARRY_DELAY: (Span, Span) = (Span::from_millis(1), Span::from_secs(60));

impl World<'_> {
    /// Begins to fetch the checkpoints for the attempt of this rank.
    pub(super) fn fetch_checkpoints(&mut self, node: usize, start: &RankStart) {
        let delay = self.delays.span(CARRY_DELAY);
        let generation = self.nodes[node].generation;
        let fetched = DaemonSimEvent::CheckpointsFetched(start.rank.attempt, start.node_rank);
        self.queue.put(self.now + delay, SimEvent::Daemon(node, generation, fetched));
    }

    /// The daemon has fetched the checkpoints, or could not.
    pub(super) fn checkpoints_fetched(
        &mut self,
        node: usize,
        attempt: AttemptId,
        node_rank: u32,
    ) -> Result<(), SimFailure> {
        let missing = |why: &str| CheckpointResult::Missing(why.to_owned());
        let result = if self.head.is_up() {
            let head = self.head.head();
            let found = head.checkpoints_for(self.nodes[node].id, attempt, node_rank);
            match found.map(|(_, keeper)| head.link_of(keeper)) {
                Some(Some(_)) => CheckpointResult::Carried(Bytes(1 << 20)),
                Some(None) => missing("its node is not connected"),
                None => missing("the head knows of none"),
            }
        } else {
            missing("the head does not answer")
        };
        let fetched = FetchedCheckpoints { result: Some(result), note: None };
        self.worker_event(node, WorkerEvent::CheckpointsFetched(attempt, fetched))
    }
}
