//! Worker daemons and machines in the simulated cluster.
//!
//! Events of a machine go to its daemon. What happens while the daemon is down is found by the next one.

use cohabit_types::{AttemptId, Signal, Span, Time};
use cohabit_worker_core::{GpuAccess, WorkerEffect, WorkerEvent};

use super::World;
use crate::alarm::AlarmToken;
use crate::checks;
use crate::failure::{FailureKind, SimFailure};
use crate::machine::{Outbox, RankTimer};
use crate::node::Daemon;
use crate::process::StartConditions;
use crate::scenario::CheckLevel;
use crate::sim_event::{DaemonSimEvent, SimEvent, SimMessage};

impl World<'_> {
    pub(super) fn is_alive(&self, node: usize, generation: u64) -> bool {
        self.nodes[node].generation == generation && self.nodes[node].daemon.is_some()
    }

    /// Passes an event to a worker daemon if it runs.
    pub(super) fn worker_event(&mut self, node: usize, event: WorkerEvent) -> Result<(), SimFailure> {
        if self.nodes[node].daemon.is_none() {
            return Ok(());
        }
        if self.nodes[node].halt.is_some() {
            let generation = self.nodes[node].generation;
            self.nodes[node].stalled.push(SimEvent::Worker(node, generation, event));
            return Ok(());
        }
        self.counters.events += 1;
        self.record_event(&event);
        self.recorder.add(self.now, || format!("worker {node} <- {event:?}"));
        let wall = self.nodes[node].machine.wall(self.now);
        let Some(daemon) = &mut self.nodes[node].daemon else { return Ok(()) };
        let effects = daemon.handle(wall, event, self.settings.check_level)?;
        self.record_event(&effects);
        for effect in effects {
            self.worker_effect(node, effect)?;
        }
        self.set_daemon_alarm(node);
        Ok(())
    }

    /// Handles the timer of a worker daemon, and checks that the daemon moved its deadline.
    pub(super) fn daemon_alarm(&mut self, node: usize, setting: AlarmToken) -> Result<(), SimFailure> {
        let Some(daemon) = &mut self.nodes[node].daemon else { return Ok(()) };
        if !daemon.alarm.rings(setting) {
            return Ok(());
        }
        self.worker_event(node, WorkerEvent::Alarm)?;
        // Steps of a stop sequence without a grace period follow each other at the same time.
        let overdue = |daemon: &Daemon| daemon.worker.deadline().filter(|at| *at < daemon.now);
        match self.nodes[node].daemon.as_ref().and_then(overdue) {
            Some(at) => {
                let detail = format!("an alarm left the deadline of worker {node} where it was: {at:?}");
                Err(self.failure(FailureKind::Invariant, detail))
            }
            None => Ok(()),
        }
    }

    fn set_daemon_alarm(&mut self, node: usize) {
        let (generation, wall) = (self.nodes[node].generation, self.nodes[node].machine.wall(self.now));
        let Some(daemon) = &mut self.nodes[node].daemon else { return };
        let deadline = daemon.worker.deadline();
        if let Some((at, setting)) = daemon.alarm.set(wall, deadline) {
            let pause = at.since(wall);
            self.queue
                .put(self.now + pause, SimEvent::Daemon(node, generation, DaemonSimEvent::Alarm(setting)));
        }
    }

    fn worker_effect(&mut self, node: usize, effect: WorkerEffect) -> Result<(), SimFailure> {
        self.recorder.add(self.now, || format!("worker {node} -> {effect:?}"));
        let mut out = Outbox::default();
        match effect {
            WorkerEffect::Report(report) => {
                let link = self.nodes[node].daemon.as_ref().and_then(|daemon| daemon.link.id());
                if let (Some(link), true) = (link, self.tells(node, &report)?) {
                    self.send(link, SimMessage::Report(report));
                }
            }
            WorkerEffect::FetchCode(start) => self.fetch_code(node, &start),
            WorkerEffect::ReleaseCode(attempt) => self.release_code(node, attempt)?,
            WorkerEffect::FetchCheckpoints(start) => self.fetch_checkpoints(node, &start),
            // What arrives for nobody is ignored.
            WorkerEffect::AbandonCheckpoints(_) => {}
            WorkerEffect::Spawn(start) => {
                self.check(|| self.nodes[node].machine.copies.check(&start))?;
                self.counters.ranks += 1;
                self.counters.clients += u64::from(matches!(start.access, GpuAccess::Mps(_)));
                self.check(|| self.reference.check_spawn(self.nodes[node].id, start.rank))?;
                let conditions = self.start_conditions(start.rank.attempt);
                let spawned = self.nodes[node].machine.spawn(self.now, *start, conditions, &mut out);
                self.invariant(spawned)?;
                self.check(|| checks::check_running(self.now, &self.nodes, self.settings.max_running_jobs))?;
            }
            WorkerEffect::Stopping(rank, stopping) => self.nodes[node].machine.record_stop(rank, stopping),
            WorkerEffect::Signal(rank, signal, _) => {
                if signal == Signal::KILL && self.settings.check_level == CheckLevel::Everything {
                    self.expect_end(node, rank);
                }
                self.nodes[node].machine.signal(self.now, rank, signal, &mut out)
            }
            WorkerEffect::Kill(rank) => self.nodes[node].machine.kill(self.now, rank, &mut out),
            WorkerEffect::Lease(rank, lease) => {
                self.nodes[node].machine.lease(self.now, rank, lease, &mut out)
            }
            WorkerEffect::Explain(rank, why) => self.nodes[node].machine.explain(rank, why),
            WorkerEffect::Mps(device, order) => self.schedule_mps_answer(node, device, order),
            WorkerEffect::Allot(attempt, host) => self.begin_allotment(node, attempt, host)?,
            WorkerEffect::Forget(rank) => {
                let generation = self.nodes[node].generation;
                self.schedule_delivery(SimEvent::Daemon(node, generation, DaemonSimEvent::Forget(rank)));
            }
        }
        self.machine_outbox(node, out)
    }

    /// What a process of this attempt finds: the speed at its placement, and the checkpoint of an earlier
    /// attempt.
    fn start_conditions(&self, attempt: AttemptId) -> StartConditions {
        StartConditions { speed: self.gangs.speed(attempt), left: self.saved.get(&attempt.job).copied() }
    }

    /// Handles a timer of a machine.
    pub(super) fn at_machine(&mut self, node: usize, timer: RankTimer) -> Result<(), SimFailure> {
        let mut out = Outbox::default();
        self.nodes[node].machine.handle_timer(self.now, timer, &mut out);
        self.machine_outbox(node, out)
    }

    /// Schedules the timers of a machine and passes its events to the daemon; without a daemon, the next one
    /// finds them.
    pub(super) fn machine_outbox(&mut self, node: usize, out: Outbox) -> Result<(), SimFailure> {
        self.saved.extend(out.saved);
        self.set_machine_timers(node, out.timers);
        self.check_orphans(node, &out.orphaned)?;
        for event in out.events {
            self.check_for_mps_fault(node, &event)?;
            self.worker_event(node, event)?;
        }
        Ok(())
    }

    pub(super) fn set_machine_timers(&mut self, node: usize, timers: Vec<(Time, RankTimer)>) {
        for (at, timer) in timers {
            self.queue.put(at, SimEvent::Machine(node, timer));
        }
    }

    /// Starts a daemon, which first finds the ranks of earlier daemons and then dials the head.
    pub(super) fn start_daemon(&mut self, node: usize) -> Result<(), SimFailure> {
        let mut out = Outbox::default();
        let left = self.nodes[node].machine.find_ranks(self.now, &mut out);
        self.set_machine_timers(node, out.timers);
        self.nodes[node].start_daemon();
        self.nodes[node].noticed_at = self.now;
        for found in left {
            self.worker_event(node, WorkerEvent::Found(Box::new(found)))?;
        }
        self.dial(node, Span::ZERO)
    }
}
