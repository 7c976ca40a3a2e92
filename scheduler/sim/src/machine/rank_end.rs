//! How ranks end on a machine, and what its disk keeps of that.
//!
//! A rank is finished when its first process has ended, the processes that this one left behind are gone, and
//! its executor has written the outcome. The outcome is on the disk for certain one second later, or at once
//! where no daemon runs that could tell the head.

use cohabit_types::{Outcome, RankId, Signal, Span, Time};
use cohabit_worker_core::WorkerEvent;

use super::code_copies::SimCodeCopies;
use super::executor::ExecutorState;
use super::leases::{Contact, EXECUTOR_KILLED};
use super::{Disk, Outbox, RankTimerKind, SimMachine};
use crate::process::ProcessState;
use crate::random::Random;

/// How long processes left behind by the first process of a rank may run.
const LEFTOVER_GRACE: Span = Span::from_secs(2);
/// An unacknowledged outcome is flushed to the disk after this time.
const FLUSHED_AFTER: Span = Span::from_secs(1);
/// Probability that a power cut loses an outcome that was not flushed.
const UNFLUSHED_LOSS_PROBABILITY: f64 = 0.7;
/// Probability that a power cut loses every trace of a rank that was running.
const TRACE_LOSS_PROBABILITY: f64 = 0.2;

impl SimMachine {
    /// Ends the first process of a rank. Its executor then stops the remaining processes and writes the
    /// outcome.
    pub(super) fn end(&mut self, now: Time, rank: RankId, outcome: Outcome, out: &mut Outbox) {
        let write = self.disk.write_at(now);
        let Some(process) = self.processes.get_mut(&rank).filter(|it| it.ending.is_none()) else { return };
        out.saved.extend(process.saved(&outcome).map(|left| (rank.attempt.job, left)));
        process.ending = Some(outcome);
        match process.executor.state {
            ExecutorState::Acts => {}
            ExecutorState::Suspended => {
                (process.ended_at, process.is_gone) = (Some(now), true);
                return self.retime(now, rank, out);
            }
            ExecutorState::Killed if process.is_killed_by_daemon => return self.finish(now, rank, out),
            ExecutorState::Killed => return self.lose_rank(now, rank, EXECUTOR_KILLED, out),
        }
        let process = self.processes.get_mut(&rank).expect("it has just ended");
        let leftovers = process.program.leftover_duration.min(LEFTOVER_GRACE);
        match leftovers + write {
            Span::ZERO => self.finish(now, rank, out),
            later => {
                out.schedule(now + leftovers, rank, RankTimerKind::Gone);
                out.schedule(now + later, rank, RankTimerKind::Over);
                self.retime(now, rank, out);
            }
        }
    }

    pub(super) fn note_gone(&mut self, rank: RankId) {
        if let Some(process) = self.processes.get_mut(&rank) {
            process.is_gone = true;
        }
    }

    /// Finishes a rank: no process of it is left, and its outcome is on the disk.
    pub(super) fn finish(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let wall = self.clock.read(now);
        let Some(process) = self.processes.get_mut(&rank) else { return };
        let Some(outcome) = process.ending.take() else { return };
        self.accounts.close(now, rank, process, &outcome);
        let ending = process.end_at(wall, outcome);
        process.state = ProcessState::Ended(ending.clone());
        process.flushed_at = if process.executor.is_orphaned() { now } else { now + FLUSHED_AFTER };
        if process.reports_adaptively() {
            // An executor reads the progress once more when its rank has ended.
            out.events.push(WorkerEvent::Progress(rank, process.progress(now, self.clock)));
        }
        out.events.push(WorkerEvent::Exited(rank, ending));
        self.retime(now, rank, out);
    }

    /// Ends a rank without an outcome of its own, as when its executor is killed; the daemon writes one.
    pub(super) fn lose_rank(&mut self, now: Time, rank: RankId, why: &str, out: &mut Outbox) {
        if let Some(process) = self.processes.get_mut(&rank) {
            process.ending = Some(Outcome::Lost(why.to_owned()));
            // The executor alone knew of the stop, and it is gone.
            process.executor.die(&process.start);
        }
        self.finish(now, rank, out);
    }

    /// Kills the executor of one of the running ranks, chosen by number. A daemon that acts ends what the
    /// executor held.
    pub(crate) fn kill_executor(&mut self, now: Time, number: usize, out: &mut Outbox) {
        let run: Vec<RankId> = self.live().filter(|(_, it)| it.runs()).map(|(rank, _)| *rank).collect();
        let Some(rank) = number.checked_rem(run.len()).map(|number| run[number]) else { return };
        match self.daemon_acts {
            true => self.lose_rank(now, rank, EXECUTOR_KILLED, out),
            false => self.orphan_processes(now, rank, out),
        }
    }

    /// Ends everything that runs. Outcomes that were not flushed may be lost.
    pub(crate) fn power_off(&mut self, now: Time, disk: Disk, random: &mut Random) {
        self.power_off_gpus(disk);
        // Nothing runs on a paused machine.
        let ran_until = self.paused_since.take().unwrap_or(now);
        self.daemon_acts = false;
        self.contact = Contact::Last(now);
        let wall = self.clock.read(now);
        let mut no_trace = Vec::new();
        for (rank, process) in &mut self.processes {
            let outcome = Outcome::Lost("the machine went down".into());
            if process.is_live() {
                self.accounts.close(ran_until, *rank, process, &outcome);
                no_trace.extend(random.chance(TRACE_LOSS_PROBABILITY).then_some(*rank));
            } else if process.flushed_at > now && random.chance(UNFLUSHED_LOSS_PROBABILITY) {
                self.accounts.forgotten.insert(*rank);
            } else {
                continue;
            }
            process.state = ProcessState::Ended(process.end_at(wall, outcome));
        }
        self.clock.start();
        match disk {
            Disk::Kept => no_trace.iter().for_each(|rank| _ = self.processes.remove(rank)),
            Disk::Wiped => {
                self.accounts.forgotten.extend(self.processes.keys());
                self.processes.clear();
                self.copies = SimCodeCopies::default();
            }
        }
    }

    /// Lets the executor stop its rank, whose orphan grace ended this long ago: SIGTERM, the rest of the
    /// grace period of the job, SIGKILL. A stop that had already begun keeps its reason.
    pub(super) fn stop_orphan(&mut self, now: Time, rank: RankId, late: Span, out: &mut Outbox) {
        let wall = self.clock.read(now);
        let Some(process) = self.processes.get_mut(&rank).filter(|it| it.ending.is_none()) else { return };
        process.executor.stop.begin_orphaned(wall - late);
        let grace = process.start.spec.stop.grace;
        let rest = grace - late.min(grace);
        process.is_killed |= rest == Span::ZERO;
        let killed_at = now + rest + process.program.kill_delay;
        out.schedule(killed_at, rank, RankTimerKind::End(Outcome::Signalled(Signal::KILL)));
        out.orphaned.push(rank);
        self.signal(now, rank, Signal::TERM, out);
    }
}
