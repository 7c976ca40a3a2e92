//! How ranks end on a machine, and what its disk keeps of that.
//!
//! A rank is over when its first process has ended, everything that this left behind is gone, and its
//! executor has written down how it ended. A disk has that for certain a second later, or at once where
//! nobody is there who would tell the head.

use cohabit_types::{Outcome, RankId, Signal, Span, StopReason, Time};
use cohabit_worker_core::{StopStep, Stopping, WorkerEvent};

use super::{Disk, Machine, Outbox, RankSignalKind};
use crate::process::ProcessState;
use crate::random::Random;

/// What the first process of a rank leaves behind has so long to end.
const LEFTOVER_GRACE: Span = Span::from_secs(2);
/// An outcome that is not acknowledged is flushed to the disk after so long.
const FLUSHED_AFTER: Span = Span::from_secs(1);
/// How often a power cut takes an outcome that was not flushed.
const UNFLUSHED_LOSS_PROBABILITY: f64 = 0.7;
/// How often it takes all traces of a rank that ran.
const TRACE_LOSS_PROBABILITY: f64 = 0.2;

impl Machine {
    /// The first process has ended: its executor sees to the others, and writes down how it ended.
    pub(super) fn end(&mut self, now: Time, rank: RankId, outcome: Outcome, out: &mut Outbox) {
        let write = self.disk.write_at(now);
        let Some(process) = self.processes.get_mut(&rank).filter(|it| it.ending.is_none()) else { return };
        out.saved.extend(process.saved(&outcome).map(|left| (rank.attempt.job, left)));
        process.ending = Some(outcome);
        match process.program.leaves.min(LEFTOVER_GRACE) + write {
            Span::ZERO => self.over(now, rank, out),
            later => {
                out.pulse(now + later, rank, RankSignalKind::Over);
                self.retime(now, rank, out);
            }
        }
    }

    /// Nothing of it is left, and how it ended is on the disk.
    pub(super) fn over(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let wall = self.clock.read(now);
        let Some(process) = self.processes.get_mut(&rank) else { return };
        let Some(outcome) = process.ending.take() else { return };
        self.accounts.close(now, rank, process, &outcome);
        let ending = process.end_at(wall, outcome);
        process.life = ProcessState::Ended(ending.clone());
        process.flushed_at = if process.orphaned() { now } else { now + FLUSHED_AFTER };
        out.events.push(WorkerEvent::Exited(rank, ending));
        self.retime(now, rank, out);
    }

    /// It is gone, and left no outcome: somebody else writes that down.
    pub(super) fn lose(&mut self, now: Time, rank: RankId, why: &str, out: &mut Outbox) {
        if let Some(process) = self.processes.get_mut(&rank) {
            process.ending = Some(Outcome::Lost(why.to_owned()));
            // What its executor knew of a stop went with it.
            process.stopping = None;
        }
        self.over(now, rank, out);
    }

    /// The executor of one of several that run is killed; the daemon, which is there, clears up what it held.
    pub(crate) fn kill_executor(&mut self, now: Time, number: usize, out: &mut Outbox) {
        let run: Vec<RankId> = self.live().filter(|(_, it)| it.runs()).map(|(rank, _)| *rank).collect();
        if let Some(rank) = number.checked_rem(run.len()).map(|number| run[number]) {
            self.lose(now, rank, "its executor was killed", out);
        }
    }

    /// Everything that runs is gone at once, and of what was not flushed the disk may know nothing any more.
    pub(crate) fn power_off(&mut self, now: Time, disk: Disk, random: &mut Random) {
        self.gpus_off(disk);
        let wall = self.clock.read(now);
        let mut no_trace = Vec::new();
        for (rank, process) in &mut self.processes {
            let outcome = Outcome::Lost("the machine went down".into());
            if process.is_live() {
                self.accounts.close(now, *rank, process, &outcome);
                no_trace.extend(random.chance(TRACE_LOSS_PROBABILITY).then_some(*rank));
            } else if process.flushed_at > now && random.chance(UNFLUSHED_LOSS_PROBABILITY) {
                self.accounts.forgotten.insert(*rank);
            } else {
                continue;
            }
            process.life = ProcessState::Ended(process.end_at(wall, outcome));
        }
        self.clock.start();
        match disk {
            Disk::Kept => no_trace.iter().for_each(|rank| _ = self.processes.remove(rank)),
            Disk::Wiped => {
                self.accounts.forgotten.extend(self.processes.keys());
                self.processes.clear();
            }
        }
    }

    /// The executor's own stop sequence: SIGTERM, the job's grace, SIGKILL. A stop that had begun before
    /// keeps its reason.
    pub(super) fn stop_orphan(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let wall = self.clock.read(now);
        let Some(process) = self.processes.get_mut(&rank).filter(|it| it.ending.is_none()) else { return };
        let why = process.stopping.map_or(StopReason::Orphaned, |stopping| stopping.why);
        let grace = process.start.spec.stop.grace;
        process.stopping = Some(Stopping { why, next: StopStep::Kill, due_at: wall + grace });
        let killed_at = now + grace + process.program.on_kill;
        out.pulse(killed_at, rank, RankSignalKind::End(Outcome::Signalled(Signal::KILL)));
        self.signal(now, rank, Signal::TERM, out);
    }
}
