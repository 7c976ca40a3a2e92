//! Worker daemons fetch code: it takes a while, and needs the link over which the order came, the head, and
//! room on the disk.

use cohabit_types::{AttemptId, Span, StartFailure};
use cohabit_worker_core::{RankStart, WorkerEvent};

use super::World;
use crate::failure::SimFailure;
use crate::node::CodeFetch;
use crate::planted_bug::PlantedBug;
use crate::process::RankProcess;
use crate::sim_event::{DaemonSimEvent, SimEvent};

/// How long it takes to fetch a snapshot.
const FETCH_DELAY: (Span, Span) = (Span::from_millis(1), Span::from_secs(20));

impl World<'_> {
    /// Begins to fetch the code of this rank.
    pub(super) fn fetch_code(&mut self, node: usize, start: &RankStart) {
        let (attempt, job) = (start.code_owner(), start.rank.attempt.job);
        let delay = self.delays.span(FETCH_DELAY);
        let there = &mut self.nodes[node];
        let Some(daemon) = &mut there.daemon else { return };
        daemon.fetches.insert(attempt, CodeFetch { job, link: daemon.link.id(), is_abandoned: false });
        let fetched = SimEvent::Daemon(node, there.generation, DaemonSimEvent::CodeFetched(attempt));
        self.queue.put(self.now + delay, fetched);
    }

    /// The daemon has fetched the code and made the copy, or could not.
    pub(super) fn code_fetched(&mut self, node: usize, attempt: AttemptId) -> Result<(), SimFailure> {
        let Some(daemon) = &mut self.nodes[node].daemon else { return Ok(()) };
        let (link, Some(fetch)) = (daemon.link.id(), daemon.fetches.remove(&attempt)) else { return Ok(()) };
        let result = if fetch.is_abandoned {
            Err(StartFailure::NodeProblem("nobody waits for it".into()))
        } else if fetch.link != link || !self.head.is_up() {
            Err(StartFailure::NodeProblem("the head does not answer".into()))
        } else if self.nodes[node].machine.has_full_disk(self.now) {
            Err(StartFailure::NodeProblem("no space is left".into()))
        } else if self.head.head().code_on(self.nodes[node].id, fetch.job).is_none() {
            Err(StartFailure::Other("the head has no such code".into()))
        } else {
            Ok(())
        };
        if result.is_ok() && self.plant != Some(PlantedBug::UnfetchedCode) {
            self.nodes[node].machine.copies.add(attempt);
        }
        self.worker_event(node, WorkerEvent::CodeFetched(attempt, result))
    }

    /// Removes a copy; one that is still being made is removed when it is there.
    pub(super) fn release_code(&mut self, node: usize, attempt: AttemptId) -> Result<(), SimFailure> {
        let there = &mut self.nodes[node];
        let fetch = there.daemon.as_mut().and_then(|daemon| daemon.fetches.get_mut(&attempt));
        if let Some(fetch) = fetch {
            fetch.is_abandoned = true;
            return Ok(());
        }
        if self.plant == Some(PlantedBug::KeptCopies) {
            return Ok(());
        }
        there.machine.copies.remove(attempt);
        let uses = |it: &RankProcess| it.start.code_owner() == attempt;
        let runs = there.machine.live().find(|(_, process)| uses(process)).map(|(rank, _)| *rank);
        let detail = runs.map(|rank| format!("the code of {rank} is removed, and it runs"));
        self.invariant(detail.map_or(Ok(()), Err))
    }

    /// Checks that no copy is left where all ranks have ended.
    pub(super) fn check_code_copies(&self) -> Result<(), String> {
        let with_daemon = self.nodes.iter().filter(|node| node.daemon.is_some());
        let left = with_daemon.filter_map(|node| Some((node, node.machine.copies.any()?))).next();
        match left {
            None => Ok(()),
            Some((node, attempt)) => Err(format!(
                "{} keeps a copy of the code of {attempt}, which has ended",
                node.machine.shape().name
            )),
        }
    }
}
