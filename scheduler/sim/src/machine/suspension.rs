//! What is suspended on a machine, or killed there: executors, and the whole machine.

use cohabit_types::{Outcome, RankId, Span, Time};
use cohabit_worker_core::Lease;

use super::executor::{ExecutorMessage, ExecutorState};
use super::leases::EXECUTOR_KILLED;
use super::{Outbox, SimMachine};
use crate::planted_bug::PlantedBug;
use crate::process::ProcessState;

impl SimMachine {
    /// Whether a daemon acts: one that is alive and not suspended.
    pub(crate) fn set_daemon(&mut self, now: Time, acts: bool, out: &mut Outbox) {
        let stops = self.daemon_acts && !acts;
        self.daemon_acts = acts;
        if stops {
            self.watch_stops(now, out);
        }
    }

    /// Suspends the executor of one of the live ranks, chosen by number, and returns its rank.
    pub(crate) fn suspend_executor(&mut self, now: Time, number: usize, out: &mut Outbox) -> Option<RankId> {
        let live = self.live().filter(|(_, process)| process.executor.acts() && process.ending.is_none());
        let live: Vec<RankId> = live.map(|(rank, _)| *rank).collect();
        let rank = live[number.checked_rem(live.len())?];
        // It has heard everything until now.
        self.lease_until(now, rank, out);
        self.processes.get_mut(&rank)?.executor.state = ExecutorState::Suspended;
        Some(rank)
    }

    /// Lets an executor go on. It looks first at whether its rank has ended, then at what its daemon has
    /// sent.
    pub(crate) fn resume_executor(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let late_reap = self.plant == Some(PlantedBug::LateReap);
        let Some(process) = self.processes.get_mut(&rank) else { return };
        if !process.is_live() || process.executor.state != ExecutorState::Suspended {
            return;
        }
        process.executor.state = ExecutorState::Acts;
        let unread = std::mem::take(&mut process.executor.unread);
        let is_stop = |it: &ExecutorMessage| !matches!(it, ExecutorMessage::Lease(..));
        let was_told_to_stop = process.executor.stop.stopping().is_some() || unread.iter().any(is_stop);
        if let Some(outcome) = process.ending.take() {
            if outcome == Outcome::Exited(0) && !was_told_to_stop {
                self.accounts.finished_unseen.insert(rank);
            }
            if late_reap {
                self.stop_expired(now, rank);
            }
            return self.end(now, rank, outcome, out);
        }
        if std::mem::take(&mut process.starts_late) {
            self.start(now, rank, out);
        }
        for message in unread {
            match message {
                ExecutorMessage::Lease(lease, at) => self.hear(now, rank, lease, at, out),
                ExecutorMessage::Stopping(stopping) => self.record_stop(rank, stopping),
                ExecutorMessage::Signal(signal) => self.signal(now, rank, signal, out),
            }
        }
        self.hear_again(now, rank, out);
    }

    /// Lets all executors go on.
    pub(crate) fn resume_executors(&mut self, now: Time, out: &mut Outbox) {
        for rank in self.live_ranks() {
            self.resume_executor(now, rank, out);
        }
    }

    /// Kills the executors of all ranks, as a name kills them all. Their watchdogs have another name.
    pub(crate) fn kill_executors(&mut self, now: Time, out: &mut Outbox) {
        for rank in self.live_ranks() {
            self.orphan_processes(now, rank, out);
        }
    }

    /// Kills an executor. The processes of its rank go on until a daemon or the watchdog ends them.
    pub(super) fn orphan_processes(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        self.lease_until(now, rank, out);
        if let Some(process) = self.processes.get_mut(&rank) {
            process.executor.die(&process.start);
        }
    }

    /// A daemon that acts again ends what killed executors have left.
    pub(crate) fn end_orphans(&mut self, now: Time, out: &mut Outbox) {
        for rank in self.live_ranks_in(ExecutorState::Killed) {
            self.lose_rank(now, rank, EXECUTOR_KILLED, out);
        }
    }

    /// A daemon that starts also ends ranks whose executors do not answer.
    pub(super) fn end_unanswered(&mut self, now: Time, out: &mut Outbox) {
        self.end_orphans(now, out);
        for rank in self.live_ranks_in(ExecutorState::Suspended) {
            self.lose_rank(now, rank, "its executor did not answer", out);
        }
    }

    /// Pauses the whole machine.
    pub(crate) fn pause(&mut self, now: Time, out: &mut Outbox) {
        self.paused_since = Some(now);
        self.set_pace_of_all(now, true, out);
    }

    pub(crate) const fn is_paused(&self) -> bool {
        self.paused_since.is_some()
    }

    /// Lets the machine go on. Its clocks have run on: an executor whose time has passed kills its rank at
    /// once.
    pub(crate) fn resume(&mut self, now: Time, out: &mut Outbox) {
        let Some(since) = self.paused_since.take() else { return };
        let paused: Span = now.since(since);
        for process in self.processes.values_mut() {
            if let ProcessState::Running(started_at) = &mut process.state {
                *started_at += paused;
                process.was_paused = true;
            }
        }
        self.set_pace_of_all(now, false, out);
        for rank in self.live_ranks() {
            if self.plant == Some(PlantedBug::UndatedLeases) {
                self.hear(now, rank, Lease::Held, now, out);
            }
            let leases = self.processes[&rank].executor.leases;
            self.orphan_timer(now, rank, leases, out);
            self.watch(now, rank, leases, out);
        }
    }

    fn set_pace_of_all(&mut self, now: Time, is_paused: bool, out: &mut Outbox) {
        for rank in self.live_ranks() {
            if let Some(process) = self.processes.get_mut(&rank) {
                process.is_paused = is_paused;
            }
            self.retime(now, rank, out);
        }
    }

    pub(super) fn live_ranks(&self) -> Vec<RankId> {
        self.live().map(|(rank, _)| *rank).collect()
    }

    fn live_ranks_in(&self, state: ExecutorState) -> Vec<RankId> {
        self.live().filter(|(_, process)| process.executor.state == state).map(|(rank, _)| *rank).collect()
    }
}
