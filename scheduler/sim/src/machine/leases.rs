//! What the executors of a machine know of the head, and what they and their watchdogs do without it.

use cohabit_types::{Outcome, RankId, Signal, Time};
use cohabit_worker_core::{Lease, StopAction, WATCHDOG_INTERVAL};

use super::executor::{ExecutorMessage, ExecutorState};
use super::{Outbox, RankTimerKind, SimMachine};
use crate::planted_bug::PlantedBug;

/// Whether the daemon of a machine reaches the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contact {
    /// It does, and tells the executors again and again.
    Present,
    /// It did so last at this true time.
    Last(Time),
}

impl SimMachine {
    /// The daemon reaches the head from now on; executors hear of it by their leases.
    pub(crate) const fn gain_contact(&mut self) {
        self.contact = Contact::Present;
    }

    /// A daemon that reached the head at this time, and has no word of it since.
    pub(crate) const fn last_contact(&mut self, at: Time) {
        self.contact = Contact::Last(at);
    }

    /// The daemon does not reach the head any more. What it told the executors last is that it did just now.
    pub(crate) fn lose_contact(&mut self, now: Time, out: &mut Outbox) {
        if self.contact == Contact::Present {
            self.contact = Contact::Last(now);
            for rank in self.live_ranks() {
                self.tell_lease(now, rank, Lease::Held, now, out);
            }
        }
    }

    /// The daemon that went on reaches the head, and renews all leases.
    pub(crate) fn renew_leases(&mut self, now: Time, out: &mut Outbox) {
        self.gain_contact();
        for rank in self.live_ranks() {
            self.tell_lease(now, rank, Lease::Held, now, out);
        }
    }

    /// The time at which the head could last be reached.
    pub(super) const fn reached_at(&self, now: Time) -> Time {
        match self.contact {
            Contact::Present => now,
            Contact::Last(at) => at,
        }
    }

    /// Tells the executor of a rank whether the head can be reached.
    pub(crate) fn lease(&mut self, now: Time, rank: RankId, lease: Lease, out: &mut Outbox) {
        match lease {
            Lease::Held => self.tell_lease(now, rank, lease, self.reached_at(now), out),
            Lease::Orphaned => {
                self.lose_contact(now, out);
                self.tell_lease(now, rank, lease, now, out);
            }
        }
    }

    /// The same for this true time.
    fn tell_lease(&mut self, now: Time, rank: RankId, lease: Lease, at: Time, out: &mut Outbox) {
        let at = self.lease_clock(at);
        let Some(process) = self.processes.get_mut(&rank).filter(|process| process.is_live()) else { return };
        match process.executor.state {
            ExecutorState::Acts => self.hear(now, rank, lease, at, out),
            ExecutorState::Suspended => process.executor.unread.push(ExecutorMessage::Lease(lease, at)),
            ExecutorState::Killed => {}
        }
    }

    /// An executor hears whether the head could be reached at this time of its clock.
    pub(super) fn hear(&mut self, now: Time, rank: RankId, lease: Lease, at: Time, out: &mut Outbox) {
        let at = if self.plant == Some(PlantedBug::UndatedLeases) { self.lease_clock(now) } else { at };
        let Some(process) = self.processes.get_mut(&rank) else { return };
        process.executor.hear(lease, at, process.start.spec.stop.grace);
        if (lease, self.contact) != (Lease::Held, Contact::Present) {
            self.set_lease_timers(now, rank, out);
        }
    }

    /// An executor that will hear nothing more has heard everything until now.
    pub(super) fn lease_until(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let at = self.lease_clock(now);
        let Some(process) = self.processes.get_mut(&rank).filter(|process| process.executor.acts()) else {
            return;
        };
        if self.contact == Contact::Present {
            process.executor.hear(Lease::Held, at, process.start.spec.stop.grace);
            self.set_lease_timers(now, rank, out);
        }
    }

    /// An executor that goes on hears whether the head can be reached now.
    pub(super) fn hear_again(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        match self.contact {
            Contact::Present => self.tell_lease(now, rank, Lease::Held, now, out),
            Contact::Last(_) => self.set_lease_timers(now, rank, out),
        }
    }

    pub(super) fn set_lease_timers(&self, now: Time, rank: RankId, out: &mut Outbox) {
        let Some(process) = self.processes.get(&rank) else { return };
        let (executor, clock) = (&process.executor, self.lease_clock(now));
        let leases = executor.leases;
        if let Some(at) = executor.timer.deadline() {
            out.schedule(now + at.since(clock), rank, RankTimerKind::Orphan { leases });
        }
        if let Some(at) = executor.kill_at {
            let looks_at = now + at.since(clock) + WATCHDOG_INTERVAL;
            out.schedule(looks_at, rank, RankTimerKind::Watchdog { leases });
        }
    }

    /// The orphan timer of an executor: an end that it has noticed comes first.
    pub(super) fn orphan_timer(&mut self, now: Time, rank: RankId, leases: u64, out: &mut Outbox) {
        let clock = self.lease_clock(now);
        let Some(process) = self.processes.get_mut(&rank) else { return };
        let is_due = process.executor.acts() && process.executor.leases == leases && process.runs();
        if !is_due || process.ending.is_some() {
            return;
        }
        match process.executor.timer.expired_at(clock) {
            Some(expired_at) => {
                let late = clock.since(expired_at);
                self.stop_orphan(now, rank, late, out);
            }
            None => {
                if let Some(at) = process.executor.timer.deadline() {
                    out.schedule(now + at.since(clock), rank, RankTimerKind::Orphan { leases });
                }
            }
        }
    }

    /// Looks at the timer before the end of the rank, as an executor must not: a rank that has ended counts
    /// as stopped.
    pub(super) fn stop_expired(&mut self, now: Time, rank: RankId) {
        let (clock, wall) = (self.lease_clock(now), self.clock.read(now));
        let Some(process) = self.processes.get_mut(&rank) else { return };
        if process.executor.timer.expired_at(clock).is_some() {
            process.executor.stop.begin_orphaned(wall);
        }
    }

    /// A watchdog looks at its time. It kills its executor, if that lives, and all processes of the rank.
    pub(super) fn watch(&mut self, now: Time, rank: RankId, leases: u64, out: &mut Outbox) {
        let clock = self.lease_clock(now);
        let Some(process) = self.processes.get_mut(&rank) else { return };
        let executor = &process.executor;
        let is_due = executor.leases == leases && executor.kill_at.is_some_and(|at| at <= clock);
        // An executor that writes down how its rank ended has called its watchdog off.
        let is_over = process.ending.is_some() && executor.acts();
        if !is_due || is_over || !process.runs() || self.plant == Some(PlantedBug::NoWatchdog) {
            return;
        }
        process.executor.die(&process.start);
        self.kill_processes(now, rank, out);
    }

    /// Sends SIGKILL to all processes of a rank whose executor is dead.
    pub(super) fn kill_processes(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let Some(process) = self.processes.get_mut(&rank) else { return };
        process.is_killed = true;
        match process.ending {
            Some(_) if process.is_killed_by_daemon => {
                process.ending = Some(Outcome::Signalled(Signal::KILL));
                self.finish(now, rank, out);
            }
            Some(_) => self.lose_rank(now, rank, EXECUTOR_KILLED, out),
            None => {
                let end = RankTimerKind::End(Outcome::Signalled(Signal::KILL));
                out.schedule(now + process.program.kill_delay, rank, end);
            }
        }
    }

    /// The daemon takes no steps of stops any more: executors do, when these are overdue.
    pub(super) fn watch_stops(&self, now: Time, out: &mut Outbox) {
        for (rank, _) in self.live() {
            self.schedule_overdue_step(now, *rank, out);
        }
    }

    fn schedule_overdue_step(&self, now: Time, rank: RankId, out: &mut Outbox) {
        let process = self.processes.get(&rank).filter(|process| process.runs() && !self.daemon_acts);
        if let Some(at) = process.and_then(|process| process.executor.stop.overdue_at()) {
            out.schedule(now + at.since(self.clock.read(now)), rank, RankTimerKind::OverdueStep);
        }
    }

    /// An executor takes a step of a stop that no daemon has taken.
    pub(super) fn overdue_step(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let wall = self.clock.read(now);
        let Some(process) = self.processes.get_mut(&rank).filter(|process| process.runs()) else { return };
        let is_due = process.executor.stop.overdue_at().is_some_and(|at| at <= wall);
        if self.daemon_acts || !is_due || !process.executor.acts() || process.ending.is_some() {
            return;
        }
        for action in process.executor.stop.advance(wall) {
            match action {
                StopAction::Signal(signal, _) => self.signal(now, rank, signal, out),
                StopAction::Kill => self.signal(now, rank, Signal::KILL, out),
            }
        }
        self.schedule_overdue_step(now, rank, out);
    }

    /// The clock by which leases count: it runs while the machine is paused, and nobody can set it.
    pub(super) fn lease_clock(&self, now: Time) -> Time {
        match self.plant {
            Some(PlantedBug::WallClockLeases) => self.clock.shown(now),
            Some(_) | None => self.clock.read(now),
        }
    }
}

/// How a rank is lost whose executor was killed.
pub(super) const EXECUTOR_KILLED: &str = "its executor was killed";
