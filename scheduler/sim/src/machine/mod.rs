//! A simulated machine: devices, executors with their processes, and the outcomes on its disk.
//!
//! It answers the effects of a worker core as a real machine would. Executors outlive the worker daemon and
//! end their ranks themselves if no daemon contacts them for too long. The machine knows nothing of the head.
//!
//! Start reading with [`SimMachine::spawn`] and [`SimMachine::handle_timer`].

mod code_copies;
mod disk;
mod executor;
mod gpu_states;
mod gpus;
mod hardware;
mod host_shares;
mod leases;
mod memory;
mod overload;
mod process_outcomes;
mod progress;
mod rank_end;
mod suspension;

use std::collections::BTreeMap;

use cohabit_policy::interference::GpuKind;
use cohabit_types::{
    AttemptId, HostShare, JobId, Outcome, RankId, Signal, Span, StartFailure, StopReason, Time,
};
use cohabit_worker_core::{FoundRank, LEASE_TERM, Lease, OrphanTimer, RankStart, Stopping, WorkerEvent};

use self::code_copies::SimCodeCopies;
pub use self::disk::Disk;
use self::disk::DiskState;
pub(crate) use self::executor::SimExecutor;
use self::executor::{ExecutorMessage, ExecutorState};
pub(crate) use self::gpu_states::FaultChance;
use self::gpu_states::GpuStates;
pub use self::gpu_states::{FaultAttribution, ObservedMemory};
pub use self::hardware::{DEFAULT_MAX_SLOWDOWN, Hardware};
use self::leases::Contact;
use self::process_outcomes::ProcessOutcomes;
use crate::machine_spec::MachineSpec;
use crate::planted_bug::PlantedBug;
use crate::process::{InterruptedStart, ProcessState, RankProcess, StartConditions, describe};
use crate::random::Random;
use crate::wall_clock::{ClockStep, WallClock};

/// A machine and what runs on it.
#[derive(Debug)]
pub(crate) struct SimMachine {
    shape: MachineSpec,
    /// The kind of its devices.
    gpu_kind: GpuKind,
    hardware: Hardware,
    orphan_grace: Span,
    processes: BTreeMap<RankId, Box<RankProcess>>,
    gpus: GpuStates,
    accounts: ProcessOutcomes,
    /// What the ranks of attempts may use together, where it has changed since they started.
    host_shares: BTreeMap<AttemptId, HostShare>,
    disk: DiskState,
    pub(crate) copies: SimCodeCopies,
    clock: WallClock,
    contact: Contact,
    /// Whether a worker daemon acts: one that is alive and not suspended.
    daemon_acts: bool,
    /// Until then, no executor can be started.
    program_broken_until: Time,
    /// Since when the machine is paused, if it is.
    paused_since: Option<Time>,
    plant: Option<PlantedBug>,
}

/// What a machine produces: timers for itself, and events for its worker daemon.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) timers: Vec<(Time, RankTimer)>,
    pub(crate) events: Vec<WorkerEvent>,
    /// Work that jobs had left when they saved a checkpoint, in seconds alone. All machines share the disk
    /// that holds it.
    pub(crate) saved: Vec<(JobId, f64)>,
    /// Ranks whose executors stop them, because the head could not be reached for too long.
    pub(crate) orphaned: Vec<RankId>,
}

/// A timer of one rank on its machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankTimer {
    rank: RankId,
    kind: RankTimerKind,
}

#[derive(Debug, Clone, PartialEq)]
enum RankTimerKind {
    /// The start has completed or failed.
    Start,
    /// The work is done, unless its rate has changed since.
    Finish { timing: u64 },
    /// The first process ends because of a signal.
    End(Outcome),
    /// No process of the rank is left.
    Gone,
    /// The outcome of the rank is written.
    Over,
    /// The rank reports its progress, unless its reports have started anew since.
    Progress { restarts: u64 },
    /// It has loaded the checkpoint of an earlier attempt.
    Loaded,
    /// The orphan timer of the executor, unless it has heard of the head since.
    Orphan { leases: u64 },
    /// The watchdog looks at its time, unless the executor has heard of the head since.
    Watchdog { leases: u64 },
    /// A step of the stop is overdue, unless the daemon has taken it.
    OverdueStep,
}

impl Outbox {
    fn schedule(&mut self, at: Time, rank: RankId, kind: RankTimerKind) {
        self.timers.push((at, RankTimer { rank, kind }));
    }
}

impl SimMachine {
    /// The same with a planted bug.
    pub(crate) fn with_plant(self, plant: Option<PlantedBug>) -> SimMachine {
        SimMachine { plant, ..self }
    }

    pub(crate) fn new(shape: MachineSpec, hardware: Hardware, orphan_grace: Span) -> SimMachine {
        SimMachine {
            gpu_kind: GpuKind::named(&shape.model),
            shape,
            hardware,
            orphan_grace,
            processes: BTreeMap::new(),
            gpus: GpuStates::default(),
            accounts: ProcessOutcomes::default(),
            host_shares: BTreeMap::new(),
            disk: DiskState::default(),
            copies: SimCodeCopies::default(),
            clock: WallClock::default(),
            contact: Contact::Present,
            daemon_acts: true,
            program_broken_until: Time::EPOCH,
            paused_since: None,
            plant: None,
        }
    }

    /// Starts an executor with this rank.
    ///
    /// # Errors
    /// If the rank was started before, or may not use its GPUs in this way.
    pub(crate) fn spawn(
        &mut self,
        now: Time,
        start: RankStart,
        conditions: StartConditions,
        out: &mut Outbox,
    ) -> Result<(), String> {
        let rank = start.rank;
        let leased_at = self.lease_clock(self.reached_at(now));
        let curve = self.curve(&start.spec);
        let process =
            RankProcess { curve, ..RankProcess::new(start, conditions, leased_at, self.orphan_grace) };
        self.check_access(rank, &process)?;
        let takes = if self.has_broken_program(now) { Span::ZERO } else { process.program.start.result().0 };
        out.schedule(now + takes, rank, RankTimerKind::Start);
        match self.processes.insert(rank, Box::new(process)) {
            Some(earlier) => Err(format!("{} is spawned again", describe(rank, &earlier))),
            None => Ok(()),
        }
    }

    /// Records how far the stop sequence of a rank is, as its executor does.
    pub(crate) fn record_stop(&mut self, rank: RankId, stopping: Stopping) {
        let Some(process) = self.processes.get_mut(&rank).filter(|process| process.runs()) else { return };
        match process.executor.state {
            ExecutorState::Acts => process.executor.stop.note(stopping),
            ExecutorState::Suspended => process.executor.unread.push(ExecutorMessage::Stopping(stopping)),
            ExecutorState::Killed => {}
        }
    }

    /// Adds the reason of a stop to the outcome on the disk.
    pub(crate) fn explain(&mut self, rank: RankId, why: StopReason) {
        if let Some(ProcessState::Ended(ending)) =
            self.processes.get_mut(&rank).map(|process| &mut process.state)
        {
            ending.stopped = Some(why);
        }
    }

    /// Lets the executor of a running rank send a signal.
    pub(crate) fn signal(&mut self, now: Time, rank: RankId, signal: Signal, out: &mut Outbox) {
        let Some(process) = self.processes.get_mut(&rank).filter(|process| process.runs()) else { return };
        match process.executor.state {
            ExecutorState::Acts => {}
            ExecutorState::Suspended => return process.executor.unread.push(ExecutorMessage::Signal(signal)),
            ExecutorState::Killed => return,
        }
        process.is_killed |= signal == Signal::KILL;
        let end = match signal {
            Signal::KILL => Some((process.program.kill_delay, Outcome::Signalled(Signal::KILL))),
            Signal::TERM => process.terminate(now),
            _ => None,
        };
        let saves = process.saving.is_some();
        if let Some((delay, outcome)) = end {
            out.schedule(now + delay, rank, RankTimerKind::End(outcome));
        }
        if saves {
            self.retime(now, rank, out);
        }
    }

    /// Kills a rank whose executor has not started or ended it in time, and the executor. One that acts has
    /// sent SIGKILL before: what delays the end is not the executor.
    pub(crate) fn kill(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let Some(process) = self.processes.get_mut(&rank) else { return };
        match (&process.state, process.executor.state) {
            (ProcessState::Starting, _) => {
                self.fail_start(now, rank, StartFailure::Other("it was not started in time".into()), out);
            }
            (ProcessState::Running(_), ExecutorState::Suspended)
                if self.plant != Some(PlantedBug::SparedExecutor) =>
            {
                process.executor.die(&process.start);
                process.is_killed_by_daemon = true;
                self.kill_processes(now, rank, out);
            }
            (ProcessState::Running(_) | ProcessState::Ended(_), _) => {}
        }
    }

    /// Deletes the outcome of an ended rank, which the head has acknowledged.
    pub(crate) fn forget(&mut self, rank: RankId) {
        if self.processes.get(&rank).is_some_and(|process| !process.is_live()) {
            self.processes.remove(&rank);
            self.forget_host_share(rank.attempt);
        }
    }

    /// Handles a timer, unless the rank has ended or the timer is out of date.
    pub(crate) fn handle_timer(&mut self, now: Time, timer: RankTimer, out: &mut Outbox) {
        let rank = timer.rank;
        let Some(process) = self.processes.get(&rank).filter(|process| process.is_live()) else { return };
        match timer.kind {
            RankTimerKind::Start if process.state == ProcessState::Starting => self.start(now, rank, out),
            RankTimerKind::Finish { timing } if process.work.timing == timing => {
                let left = process.work.left_at(now);
                assert!(left.abs() < 1e-3, "{rank} is done with {left} s of its work left");
                self.end(now, rank, process.program.outcome(rank.attempt.attempt), out);
            }
            RankTimerKind::End(outcome) => self.end(now, rank, outcome, out),
            RankTimerKind::Gone => self.note_gone(rank),
            RankTimerKind::Over => self.finish(now, rank, out),
            RankTimerKind::Progress { restarts } if process.reporting.restarts == restarts => {
                self.progress(now, rank, out);
            }
            RankTimerKind::Loaded => self.finish_loading(now, rank, out),
            RankTimerKind::Orphan { leases } => self.orphan_timer(now, rank, leases, out),
            RankTimerKind::Watchdog { leases } => self.watch(now, rank, leases, out),
            RankTimerKind::OverdueStep => self.overdue_step(now, rank, out),
            RankTimerKind::Start | RankTimerKind::Finish { .. } | RankTimerKind::Progress { .. } => {}
        }
    }

    /// Reacts to the death of the worker daemon: executors notice it, and each interrupted start ends in a
    /// random way.
    pub(crate) fn daemon_died(&mut self, now: Time, random: &mut Random, out: &mut Outbox) {
        self.set_daemon(now, false, out);
        for rank in self.live_ranks() {
            let process = &self.processes[&rank];
            match (process.runs(), random.pick(&InterruptedStart::ALL)) {
                (true, _) => self.lease(now, rank, Lease::Orphaned, out),
                (false, InterruptedStart::GoesOn) if process.executor.acts() => {
                    self.start(now, rank, out);
                    self.lease(now, rank, Lease::Orphaned, out);
                }
                (false, InterruptedStart::GoesOn | InterruptedStart::Remains) => {
                    self.lose_rank(now, rank, "it left no outcome", out)
                }
                (false, InterruptedStart::Vanishes) => {
                    self.processes.remove(&rank);
                    self.accounts.forgotten.insert(rank);
                }
            }
        }
    }

    /// Returns what a starting worker daemon finds. A client that ended badly without an observer is
    /// explained by its broken MPS server; that is written down, because the server may be repaired before
    /// the head hears of it.
    ///
    /// It ends ranks whose executors do not answer. Of what follows from that only the timers count, those of
    /// the ranks beside them: the ranks themselves are found.
    pub(crate) fn find_ranks(&mut self, now: Time, out: &mut Outbox) -> Vec<FoundRank> {
        self.end_unanswered(now, out);
        self.copies.remove_all_but(
            &self.processes.values().filter(|it| it.is_live()).map(|it| it.start.code_owner()).collect(),
        );
        self.daemon_acts = true;
        let unseen = self.processes.values().filter(|process| process.ended_unexplained());
        let victims =
            unseen.filter(|process| self.has_lost_server(process)).map(|process| process.start.rank);
        for rank in victims.collect::<Vec<_>>() {
            self.explain(rank, StopReason::MpsFaultVictim);
        }
        self.processes.values().filter_map(|process| process.found()).collect()
    }

    /// The ranks that run or are starting.
    pub(crate) fn live(&self) -> impl Iterator<Item = (&RankId, &RankProcess)> {
        self.all().filter(|(_, process)| process.is_live())
    }

    /// Every rank that the machine still has a record of.
    fn all(&self) -> impl Iterator<Item = (&RankId, &RankProcess)> {
        self.processes.iter().map(|(rank, process)| (rank, &**process))
    }

    /// The ranks of which processes may run now.
    pub(crate) fn busy(&self, now: Time) -> impl Iterator<Item = (&RankId, &RankProcess)> {
        self.live().filter(move |(rank, process)| self.may_run(now, **rank, process))
    }

    /// Whether processes of this rank may run now.
    pub(crate) fn has_live_rank(&self, now: Time, rank: RankId) -> bool {
        self.processes.get(&rank).is_some_and(|process| process.is_live() && self.may_run(now, rank, process))
    }

    /// Not on a paused machine, and not if its executor will give it up instead of starting it.
    fn may_run(&self, now: Time, rank: RankId, process: &RankProcess) -> bool {
        let will_start = process.runs() || !self.is_given_up(now, rank);
        !self.is_paused() && process.may_run() && will_start
    }

    /// Whether this rank runs, and has not ended since.
    pub(crate) fn runs(&self, rank: RankId) -> bool {
        self.processes.get(&rank).is_some_and(|process| process.runs() && process.ending.is_none())
    }

    /// Whether nothing runs and every outcome has been acknowledged.
    pub(crate) fn is_clean(&self) -> bool {
        self.processes.is_empty()
    }

    pub(crate) const fn shape(&self) -> &MachineSpec {
        &self.shape
    }

    pub(crate) const fn accounts(&self) -> &ProcessOutcomes {
        &self.accounts
    }

    /// The wall clock of the machine, as its daemon and executors read it.
    pub(crate) fn wall(&self, now: Time) -> Time {
        self.clock.read(now)
    }

    /// Sets the clock. The change takes effect when the machine is next started.
    pub(crate) fn step_clock(&mut self, now: Time, step: ClockStep, out: &mut Outbox) {
        if self.plant == Some(PlantedBug::WallClockLeases) {
            self.live_ranks().into_iter().for_each(|rank| self.lease_until(now, rank, out));
        }
        self.clock.step(step);
        if self.plant == Some(PlantedBug::WallClockLeases) {
            self.live_ranks().into_iter().for_each(|rank| self.set_lease_timers(now, rank, out));
        }
    }

    /// Makes the disk slow: until this time, writing an outcome takes `write`.
    pub(crate) const fn slow_disk(&mut self, until: Time, write: Span) {
        self.disk.slow(until, write);
    }

    /// Makes the disk full until this time.
    pub(crate) const fn fill_disk(&mut self, until: Time) {
        self.disk.fill(until);
    }

    /// Whether the disk is full.
    pub(crate) fn has_full_disk(&self, now: Time) -> bool {
        self.disk.is_full(now)
    }

    /// Until this time, no executor can be started.
    pub(crate) const fn break_program(&mut self, until: Time) {
        self.program_broken_until = until;
    }

    fn start(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let wall = self.clock.read(now);
        if self.is_start_deferred(rank) {
            return;
        }
        if self.is_given_up(now, rank) {
            return self.lose_rank(now, rank, "the head could not be reached when it was to start", out);
        }
        let start_failure = self.start_failure(now, rank);
        let hangs = self.processes.get(&rank).is_some_and(|process| self.has_lost_server(process));
        let Some(process) = self.processes.get_mut(&rank) else { return };
        let result = start_failure.map_or(process.program.start.result().1, Err);
        match result {
            Ok(()) => {
                process.state = ProcessState::Running(now);
                process.started_at = wall;
                process.executor.begin(&process.start, wall);
                process.hangs = hangs;
                if process.loading {
                    out.schedule(now + process.program.restart_duration, rank, RankTimerKind::Loaded);
                }
                if !process.reports_adaptively() {
                    schedule_report(now, rank, process, out);
                }
                out.events.push(WorkerEvent::Spawned(rank));
                out.events.extend(process.enforcement().map(|known| WorkerEvent::Sharing(rank, known)));
                self.retime(now, rank, out);
                self.take_memory(now, rank, out);
                self.hear_again(now, rank, out);
            }
            Err(failure) => self.fail_start(now, rank, failure, out),
        }
    }

    /// Whether the executor of this rank is suspended or dead: it starts the rank later, or never.
    fn is_start_deferred(&mut self, rank: RankId) -> bool {
        let Some(process) = self.processes.get_mut(&rank).filter(|it| !it.executor.acts()) else {
            return false;
        };
        process.starts_late = true;
        true
    }

    /// Whether an executor that is about to start this rank gives it up, because the head could not be
    /// reached for too long since it was assigned.
    fn is_given_up(&self, now: Time, rank: RankId) -> bool {
        let Some(process) = self.processes.get(&rank) else { return false };
        let leased_at = match self.plant {
            Some(PlantedBug::UndatedLeases) => self.lease_clock(now),
            Some(_) | None => process.executor.leased_at,
        };
        let mut timer = OrphanTimer::new(leased_at, self.orphan_grace, Some(LEASE_TERM));
        timer.expired_at(self.lease_clock(now)).is_some()
    }

    fn fail_start(&mut self, now: Time, rank: RankId, failure: StartFailure, out: &mut Outbox) {
        let wall = self.clock.read(now);
        let Some(process) = self.processes.get_mut(&rank) else { return };
        let outcome = Outcome::NotStarted(failure.clone());
        self.accounts.close(now, rank, process, &outcome);
        process.state = ProcessState::Ended(process.end_at(wall, outcome));
        out.events.push(WorkerEvent::SpawnFailed(rank, self.blame(failure)));
    }

    /// A failure as the daemon reports it.
    fn blame(&self, failure: StartFailure) -> StartFailure {
        match (self.plant, failure) {
            (Some(PlantedBug::BlamedJob), StartFailure::NodeProblem(what)) => StartFailure::Other(what),
            (_, failure) => failure,
        }
    }

    /// Why the machine cannot start this rank, if it cannot.
    fn start_failure(&self, now: Time, rank: RankId) -> Option<StartFailure> {
        let full = || StartFailure::NodeProblem("no space is left on its disk".into());
        let broken = || StartFailure::NodeProblem("no executor can be started: permission denied".into());
        let of_machine = self.disk.is_full(now).then(full);
        let of_machine = of_machine.or_else(|| self.has_broken_program(now).then(broken));
        of_machine.or_else(|| self.taken_port(rank).map(StartFailure::PortTaken))
    }

    fn has_broken_program(&self, now: Time) -> bool {
        now < self.program_broken_until
    }

    /// The rendezvous port of this rank, if another program listens on it.
    fn taken_port(&self, rank: RankId) -> Option<u16> {
        let port = self.processes.get(&rank)?.start.rendezvous_port?;
        let listens = |other: &RankProcess| other.runs() && other.start.rendezvous_port == Some(port);
        (self.shape.is_foreign(port) || self.all().any(|(_, other)| listens(other))).then_some(port)
    }

    /// The checkpoint is loaded, and the process works on.
    fn finish_loading(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        if let Some(process) = self.processes.get_mut(&rank) {
            process.loading = false;
        }
        self.retime(now, rank, out);
    }

    fn progress(&self, now: Time, rank: RankId, out: &mut Outbox) {
        let Some(process) = self.processes.get(&rank) else { return };
        out.events.push(WorkerEvent::Progress(rank, process.progress(now, self.clock)));
        schedule_report(now, rank, process, out);
    }
}

/// Schedules the next report of a process, if it reports.
fn schedule_report(now: Time, rank: RankId, process: &RankProcess, out: &mut Outbox) {
    if let Some(pause) = process.next_report(now) {
        let restarts = process.reporting.restarts;
        out.schedule(now + pause, rank, RankTimerKind::Progress { restarts });
    }
}
