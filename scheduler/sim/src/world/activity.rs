//! Whether the ranks of interactive jobs work, as their workers read it.

use cohabit_types::{Bytes, RankId, Span};
use cohabit_worker_core::WorkerEvent;

use super::World;
use crate::failure::SimFailure;
use crate::machine::ObservedMemory;

/// The processor time of a rank that works, from one reading to the next.
const WORK: Span = Span::from_secs(20);

impl World<'_> {
    /// The worker reads whether the ranks of interactive jobs have worked.
    pub(super) fn read_activity(&mut self, node: usize, works: bool) -> Result<(), SimFailure> {
        let Some(daemon) = self.nodes[node].daemon.as_ref() else { return Ok(()) };
        let watched: Vec<RankId> = daemon.worker.watched_for_activity().collect();
        if watched.is_empty() {
            return Ok(());
        }
        let node_of = &mut self.nodes[node];
        if works {
            node_of.processor_time = node_of.processor_time + WORK;
        }
        let times = watched.into_iter().map(|rank| (rank, node_of.processor_time)).collect();
        let mut samples = node_of.machine.sample_gpus(Bytes::ZERO, ObservedMemory::AsRequested);
        for reading in samples.iter_mut().filter_map(|sample| sample.reading.as_mut().ok()) {
            reading.utilization = Some(if works { 1.0 } else { 0.0 });
        }
        self.worker_event(node, WorkerEvent::ProcessorTime(times))?;
        match samples.is_empty() {
            true => Ok(()),
            false => self.worker_event(node, WorkerEvent::Sampled(samples)),
        }
    }
}
