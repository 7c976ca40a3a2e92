//! External events: crashes, broken links, and the beginning of the quiet phase.
//!
//! A process that dies alone has its connections closed by its machine. One that dies with its machine leaves
//! them open, and the other side notices later.

use cohabit_types::{DrainRequest, RankId, Request, Span, Time};

use super::World;
use crate::failure::SimFailure;
use crate::head::HeadState;
use crate::impostor::Lie;
use crate::journal::WriteOutcome;
use crate::link::Side;
use crate::machine::{Disk, Outbox};
use crate::node::{Halt, Power};
use crate::scenario::ExternalEvent;
use crate::sim_event::{LinkId, SimEvent};

impl World<'_> {
    /// Makes an external event happen.
    pub(super) fn handle_external_event(&mut self, event: ExternalEvent) -> Result<(), SimFailure> {
        self.recorder.add(self.now, || format!("outside     {event:?}"));
        if event.on_running_machine().is_some_and(|node| self.nodes[node].machine.is_paused()) {
            return Ok(());
        }
        match event {
            ExternalEvent::Submit(index) => self.submit(index),
            ExternalEvent::Change { change, back } => {
                let request = self.clients.change(change, back);
                request.into_iter().for_each(|request| self.send_request(request));
            }
            ExternalEvent::Hostile(request) => {
                let nodes = &self.nodes;
                let request = self.clients.hostile(request, |node| nodes[node].id.to_string());
                request.into_iter().for_each(|request| self.send_request(request));
            }
            ExternalEvent::Impostor(lie) => self.let_impostor_lie(lie)?,
            ExternalEvent::Drain(node) => {
                self.administer(Request::Drain(DrainRequest::new(self.nodes[node].id.to_string())))
            }
            ExternalEvent::ApplyShares(table) => self.administer(Request::ApplyShares(table.clone())),
            ExternalEvent::Reserve(drawn) => self.administer(Request::Reserve(drawn)),
            ExternalEvent::CancelReservation(number) => self.administer(Request::CancelReservation(number)),
            ExternalEvent::ReadActivity { node, works } => self.read_activity(node, works)?,
            ExternalEvent::Resume(node) => self.administer(Request::Resume(self.nodes[node].id.to_string())),
            ExternalEvent::CrashHead { effects_lost, down_for } => {
                self.schedule_head_crash(effects_lost, down_for)?
            }
            ExternalEvent::CrashWorker { node, down_for } => self.crash_worker(node, down_for)?,
            ExternalEvent::CrashMachine { node, down_for, disk } => self.crash_machine(node, down_for, disk),
            ExternalEvent::KillByName { node, down_for } => self.kill_by_name(node, down_for)?,
            ExternalEvent::SuspendWorker { node, length } => self.halt(node, Halt::Daemon, length)?,
            ExternalEvent::PauseMachine { node, length } => self.halt(node, Halt::Machine, length)?,
            ExternalEvent::SuspendExecutor { node, number, length } => {
                self.suspend_executor(node, number, length)?;
            }
            ExternalEvent::Cut { node, length, head_notices, worker_notices } => {
                self.cut_link(node, length, head_notices, worker_notices);
            }
            ExternalEvent::Redial { node, times, lag } => self.redial(node, times, lag)?,
            ExternalEvent::SlowJournal { length, commit } => {
                self.head.journal.slow(self.now + length, commit)
            }
            ExternalEvent::FillJournal { length } => self.head.journal.fill(self.now + length),
            ExternalEvent::StallPolicy { length } => self.head.stall_policy(self.now + length),
            ExternalEvent::SlowDisk { node, length, write } => {
                self.nodes[node].machine.slow_disk(self.now + length, write);
            }
            ExternalEvent::FillDisk { node, length } => self.nodes[node].machine.fill_disk(self.now + length),
            ExternalEvent::StepHeadClock(step) => self.step_head_clock(step),
            ExternalEvent::BreakProgram { node, length } => {
                self.nodes[node].machine.break_program(self.now + length);
            }
            ExternalEvent::StepClock { node, step } => {
                let mut out = Outbox::default();
                self.nodes[node].machine.step_clock(self.now, step, &mut out);
                self.machine_outbox(node, out)?;
            }
            ExternalEvent::KillExecutor { node, number } => self.kill_executor(node, number)?,
            ExternalEvent::BreakMps { node, number, attribution } => {
                self.break_mps(node, number, attribution)?
            }
            ExternalEvent::LoseGpu { node, number } => self.lose_gpu(node, number)?,
            ExternalEvent::Xid { node, number, code } => self.report_xid(node, number, code)?,
            ExternalEvent::Look { node, foreign_memory, observed } => {
                self.sample_gpus(node, foreign_memory, observed)?
            }
        }
        Ok(())
    }

    /// Lets the impostor join, say something of a rank that another worker holds, and go.
    fn let_impostor_lie(&mut self, lie: Lie) -> Result<(), SimFailure> {
        self.counters.lies += 1;
        let daemons = self.nodes.iter().filter_map(|node| node.daemon.as_ref());
        let held: Vec<RankId> = daemons.flat_map(|it| it.worker.held()).map(|it| it.rank).collect();
        let events = lie.events(&held, self.counters.lies, self.head_now());
        self.believe_impostor(events).into_iter().try_for_each(|event| self.head_event(event))
    }

    fn schedule_head_crash(&mut self, effects_lost: u32, back: Span) -> Result<(), SimFailure> {
        match (self.head.state, effects_lost) {
            (HeadState::Up, 0) => self.crash_head(back),
            (HeadState::Up, events) => {
                self.head.state = HeadState::CrashDuringEffects { events, back };
                Ok(())
            }
            (
                HeadState::CrashDuringEffects { .. } | HeadState::CrashAfterEvents { .. } | HeadState::Down,
                _,
            ) => Ok(()),
        }
    }

    /// Crashes the head, alone or with its machine, and schedules its restart.
    pub(super) fn crash_head(&mut self, down_for: Span) -> Result<(), SimFailure> {
        self.counters.crashes += 1;
        self.recorder.add(self.now, || "head        crashes".into());
        self.head.sessions.clear();
        let with_its_machine = self.breaks.chance(0.3);
        for id in (0..self.links.len() as u64).map(LinkId) {
            match with_its_machine {
                true => self.drop_link(id, Side::Head),
                false => self.close_link(id, Side::Head),
            }
        }
        self.queue.put(self.now + down_for, SimEvent::HeadBack);
        let outcome = if self.breaks.chance(0.5) { WriteOutcome::Written } else { WriteOutcome::Lost };
        for (at, event) in self.head.crash(self.head_now(), outcome)? {
            let effects = self.head.replay(at, event.clone())?;
            self.check_with_reference(at, &event, &effects)?;
        }
        Ok(())
    }

    /// Restarts the head after checking that it still knows every job.
    pub(super) fn restart_head(&mut self) -> Result<(), SimFailure> {
        self.recorder.add(self.now, || "head        is back".into());
        self.inject_head_bugs();
        let head = self.head.whole(self.head_now())?;
        let known = self.reference.check_all(self.head_now(), &head, &self.nodes);
        self.invariant(known)?;
        self.head.restart(self.now);
        self.order.restart();
        self.write_journal()
    }

    /// Crashes a worker daemon and schedules its restart; its executors go on.
    pub(super) fn crash_worker(&mut self, node: usize, down_for: Span) -> Result<(), SimFailure> {
        let Some(daemon) = self.nodes[node].daemon.take() else { return Ok(()) };
        self.end_halt(node);
        self.counters.crashes += 1;
        if let Some(link) = daemon.link.id() {
            self.close_link(link, Side::Worker);
        }
        let mut out = Outbox::default();
        self.nodes[node].machine.daemon_died(self.now, &mut self.breaks, &mut out);
        let generation = self.nodes[node].generation;
        self.queue.put(self.now + down_for, SimEvent::DaemonBack(node, generation));
        self.machine_outbox(node, out)
    }

    /// Restarts a worker daemon, unless its node has changed since the crash.
    pub(super) fn restart_daemon(&mut self, node: usize, generation: u64) -> Result<(), SimFailure> {
        let there = &self.nodes[node];
        if there.power == Power::On && there.daemon.is_none() && there.generation == generation {
            return self.start_daemon(node);
        }
        Ok(())
    }

    /// Switches a machine off. Its links stay open; the head notices later.
    fn crash_machine(&mut self, node: usize, down_for: Option<Span>, disk: Disk) {
        if self.nodes[node].power != Power::On {
            return;
        }
        self.counters.crashes += 1;
        self.end_halt(node);
        if let Some(link) = self.nodes[node].daemon.take().and_then(|daemon| daemon.link.id()) {
            self.drop_link(link, Side::Worker);
        }
        self.nodes[node].machine.power_off(self.now, disk, &mut self.breaks);
        if disk == Disk::Wiped {
            self.reinstall(node);
        }
        self.nodes[node].power = match down_for {
            Some(down_for) => {
                self.queue.put(self.now + down_for, SimEvent::PowerOn(node));
                Power::Off
            }
            None => Power::Gone,
        };
    }

    pub(super) fn power_on(&mut self, node: usize) -> Result<(), SimFailure> {
        if self.nodes[node].power == Power::On {
            return Ok(());
        }
        self.nodes[node].power = Power::On;
        self.start_daemon(node)
    }

    /// Kills the daemon and all executors of a node.
    fn kill_by_name(&mut self, node: usize, down_for: Span) -> Result<(), SimFailure> {
        let mut out = Outbox::default();
        self.nodes[node].machine.kill_executors(self.now, &mut out);
        self.machine_outbox(node, out)?;
        self.crash_worker(node, down_for)
    }

    fn kill_executor(&mut self, node: usize, number: usize) -> Result<(), SimFailure> {
        let mut out = Outbox::default();
        self.nodes[node].machine.kill_executor(self.now, number, &mut out);
        self.machine_outbox(node, out)
    }

    fn cut_link(&mut self, node: usize, length: Span, head_notices: Span, worker_notices: Span) {
        self.nodes[node].cut_until = self.nodes[node].cut_until.max(self.now + length);
        if let Some(link) = self.nodes[node].daemon.as_ref().and_then(|daemon| daemon.link.id()) {
            self.break_link(link, head_notices, worker_notices);
        }
    }

    /// Begins the quiet phase: no more faults happen, and machines that were gone are installed anew.
    pub(super) fn begin_quiet_phase(&mut self) -> Result<(), SimFailure> {
        self.recorder.add(self.now, || "outside     the quiet phase begins".into());
        if let HeadState::CrashDuringEffects { back, .. } | HeadState::CrashAfterEvents { back, .. } =
            self.head.state
        {
            self.crash_head(back)?;
        }
        self.head.journal.heal();
        self.head.stall_policy(self.now);
        self.let_all_go_on()?;
        for node in 0..self.nodes.len() {
            // A link that was cut until now is not open at once.
            self.nodes[node].noticed_at = self.now;
            self.nodes[node].cut_until = Time::EPOCH;
            if self.nodes[node].power == Power::Gone {
                self.nodes[node].machine.power_off(self.now, Disk::Wiped, &mut self.breaks);
                self.reinstall(node);
                self.power_on(node)?;
            }
        }
        Ok(())
    }

    fn reinstall(&mut self, node: usize) {
        let id = self.new_node_id();
        self.nodes[node].reinstall(id);
    }
}
