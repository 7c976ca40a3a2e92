//! Worker daemons and machines in the simulated cluster.
//!
//! A machine's events go to its daemon while there is one; those that come while it is dead are found by the
//! next.

use cohabit_types::{AttemptId, Span};
use cohabit_worker_core::{GpuAccess, WorkerEffect, WorkerEvent};

use super::World;
use crate::alarm::AlarmToken;
use crate::checks;
use crate::failure::{FailureKind, SimFailure};
use crate::machine::{Outbox, RankSignal};
use crate::node::Daemon;
use crate::process::StartConditions;
use crate::sim_event::{DaemonSimEvent, SimEvent, SimMessage};

impl World<'_> {
    pub(super) fn is_alive(&self, node: usize, life: u64) -> bool {
        self.nodes[node].life == life && self.nodes[node].daemon.is_some()
    }

    /// Something happens to a worker daemon, if it is there.
    pub(super) fn worker_event(&mut self, node: usize, event: WorkerEvent) -> Result<(), SimFailure> {
        if self.nodes[node].daemon.is_none() {
            return Ok(());
        }
        self.tally.events += 1;
        self.record_event(&event);
        self.recorder.note(self.now, || format!("worker {node} <- {event:?}"));
        let wall = self.nodes[node].machine.wall(self.now);
        let Some(daemon) = &mut self.nodes[node].daemon else { return Ok(()) };
        let effects = daemon.handle(wall, event, self.settings.watch)?;
        self.record_event(&effects);
        for effect in effects {
            self.worker_effect(node, effect)?;
        }
        self.set_daemon_alarm(node);
        Ok(())
    }

    pub(super) fn daemon_alarm(&mut self, node: usize, setting: AlarmToken) -> Result<(), SimFailure> {
        let Some(daemon) = &mut self.nodes[node].daemon else { return Ok(()) };
        if !daemon.alarm.rings(setting) {
            return Ok(());
        }
        self.worker_event(node, WorkerEvent::Alarm)?;
        // Steps of a stop sequence without grace follow one another at the same time.
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
        let (life, wall) = (self.nodes[node].life, self.nodes[node].machine.wall(self.now));
        let Some(daemon) = &mut self.nodes[node].daemon else { return };
        let deadline = daemon.worker.deadline();
        if let Some((at, setting)) = daemon.alarm.set(wall, deadline) {
            let pause = at.since(wall);
            self.queue.put(self.now + pause, SimEvent::Daemon(node, life, DaemonSimEvent::Alarm(setting)));
        }
    }

    fn worker_effect(&mut self, node: usize, effect: WorkerEffect) -> Result<(), SimFailure> {
        self.recorder.note(self.now, || format!("worker {node} -> {effect:?}"));
        let mut out = Outbox::default();
        match effect {
            WorkerEffect::Report(report) => {
                let link = self.nodes[node].daemon.as_ref().and_then(|daemon| daemon.link.id());
                if let (Some(link), true) = (link, self.tells(node, &report)?) {
                    self.send(link, SimMessage::Report(report));
                }
            }
            WorkerEffect::Spawn(start) => {
                self.tally.ranks += 1;
                self.tally.clients += u64::from(matches!(start.access, GpuAccess::Mps(_)));
                self.check(|| self.reference.spawns(self.nodes[node].id, start.rank))?;
                let conditions = self.conditions(start.rank.attempt);
                let spawned = self.nodes[node].machine.spawn(self.now, *start, conditions, &mut out);
                self.invariant(spawned)?;
                self.check(|| checks::check_running(&self.nodes))?;
            }
            WorkerEffect::Stopping(rank, stopping) => self.nodes[node].machine.stopping(rank, stopping),
            WorkerEffect::Signal(rank, signal, _) => {
                self.nodes[node].machine.signal(self.now, rank, signal, &mut out)
            }
            WorkerEffect::Lease(rank, lease) => {
                self.nodes[node].machine.lease(self.now, rank, lease, &mut out)
            }
            WorkerEffect::Explain(rank, why) => self.nodes[node].machine.explain(rank, why),
            WorkerEffect::Mps(device, order) => self.mps_ordered(node, device, order),
            WorkerEffect::Forget(rank) => {
                let life = self.nodes[node].life;
                self.after_travel(SimEvent::Daemon(node, life, DaemonSimEvent::Forget(rank)));
            }
        }
        self.machine_outbox(node, out)
    }

    /// What a process of this attempt finds: its gang's place, and what an earlier attempt has saved.
    fn conditions(&self, attempt: AttemptId) -> StartConditions {
        StartConditions { pace: self.gangs.pace(attempt), left: self.saved.get(&attempt.job).copied() }
    }

    pub(super) fn at_machine(&mut self, node: usize, pulse: RankSignal) -> Result<(), SimFailure> {
        let mut out = Outbox::default();
        self.nodes[node].machine.pulse(self.now, pulse, &mut out);
        self.machine_outbox(node, out)
    }

    /// What happens while no daemon is there is found by the next one.
    pub(super) fn machine_outbox(&mut self, node: usize, out: Outbox) -> Result<(), SimFailure> {
        self.saved.extend(out.saved);
        for (at, pulse) in out.pulses {
            self.queue.put(at, SimEvent::Machine(node, pulse));
        }
        for event in out.events {
            self.examine_mps(node, &event)?;
            self.worker_event(node, event)?;
        }
        Ok(())
    }

    /// A new daemon finds what is left of earlier ones, then calls the head.
    pub(super) fn start_daemon(&mut self, node: usize) -> Result<(), SimFailure> {
        let left = self.nodes[node].machine.found();
        self.nodes[node].start_daemon();
        for found in left {
            self.worker_event(node, WorkerEvent::Found(Box::new(found)))?;
        }
        self.dial(node, Span::ZERO)
    }
}
