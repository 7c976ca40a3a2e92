//! Worker daemons change what running attempts may use: it takes a while, may be refused, and outlives the
//! link over which it was ordered, but not the daemon.

use cohabit_types::{AttemptId, Bytes, HostShare, Span};
use cohabit_worker_core::WorkerEvent;

use super::World;
use crate::checks;
use crate::failure::SimFailure;
use crate::machine::Outbox;
use crate::scenario::CheckLevel;
use crate::sim_event::{DaemonSimEvent, SimEvent};

/// How long the kernel takes.
const CHANGE_DELAY: (Span, Span) = (Span::from_millis(1), Span::from_secs(20));

/// The same in an evaluation, and in the quiet phase.
const SHORTEST_DELAY: Span = Span::from_millis(1);

/// Probability that the kernel refuses to change anything.
const REFUSAL_PROBABILITY: f64 = 0.1;

/// Probability that the ranks hold more memory than they are to have.
const HELD_MEMORY_PROBABILITY: f64 = 0.2;

impl World<'_> {
    /// A worker daemon begins to change what an attempt may use. The limits change at once or later, in any
    /// case before the daemon knows it.
    pub(super) fn begin_allotment(
        &mut self,
        node: usize,
        attempt: AttemptId,
        wanted: HostShare,
    ) -> Result<(), SimFailure> {
        let (delay, in_force) = self.draw_allotment(node, attempt, wanted);
        if self.allotments.chance(0.5) {
            self.apply_allotment(node, attempt, in_force)?;
        }
        let changed = DaemonSimEvent::Allotted(attempt, in_force);
        self.queue.put(self.now + delay, SimEvent::Daemon(node, self.nodes[node].generation, changed));
        Ok(())
    }

    /// How long a change takes, and what is in force then.
    fn draw_allotment(&mut self, node: usize, attempt: AttemptId, wanted: HostShare) -> (Span, HostShare) {
        if self.is_quiet() || self.settings.check_level == CheckLevel::Outcomes {
            return (SHORTEST_DELAY, wanted);
        }
        let delay = self.allotments.span(CHANGE_DELAY);
        let before = self.nodes[node].machine.host_share(attempt).unwrap_or(wanted);
        let held = Bytes((before.memory.0 as f64 * self.allotments.fraction()) as u64);
        match self.allotments.fraction() {
            ..REFUSAL_PROBABILITY => (delay, before),
            ..HELD_MEMORY_PROBABILITY => (delay, HostShare { memory: wanted.memory.max(held), ..wanted }),
            _ => (delay, wanted),
        }
    }

    /// The kernel is done, and tells the daemon.
    pub(super) fn allotted(
        &mut self,
        node: usize,
        attempt: AttemptId,
        in_force: HostShare,
    ) -> Result<(), SimFailure> {
        self.apply_allotment(node, attempt, in_force)?;
        let in_force = self.nodes[node].machine.host_share(attempt);
        self.worker_event(node, WorkerEvent::Allotted(attempt, in_force))
    }

    fn apply_allotment(
        &mut self,
        node: usize,
        attempt: AttemptId,
        share: HostShare,
    ) -> Result<(), SimFailure> {
        let mut out = Outbox::default();
        self.nodes[node].machine.set_host_share(self.now, attempt, share, &mut out);
        self.check(|| checks::check_running(self.now, &self.nodes, self.settings.max_running_jobs))?;
        self.machine_outbox(node, out)
    }
}
