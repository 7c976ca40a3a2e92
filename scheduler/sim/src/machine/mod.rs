//! A simulated machine: devices, executors with their processes, and the outcomes on its disk.
//!
//! It answers the effects of a worker core as a real machine would. Executors outlive the worker daemon and
//! end their ranks themselves if no daemon contacts them for too long. The machine knows nothing of the head.
//!
//! Start reading with [`SimMachine::spawn`] and [`SimMachine::handle_timer`].

mod disk;
mod gpu_states;
mod gpus;
mod hardware;
mod memory;
mod overload;
mod process_outcomes;
mod progress;
mod rank_end;

use std::collections::BTreeMap;

use cohabit_policy::interference::GpuKind;
use cohabit_types::{JobId, Outcome, RankId, Signal, Span, StartFailure, StopReason, Time};
use cohabit_worker_core::{FoundRank, Lease, RankStart, Stopping, WorkerEvent};

pub use self::disk::Disk;
use self::disk::DiskState;
pub(crate) use self::gpu_states::FaultChance;
use self::gpu_states::GpuStates;
pub use self::gpu_states::{FaultAttribution, ObservedMemory};
pub use self::hardware::{DEFAULT_MAX_SLOWDOWN, Hardware};
use self::process_outcomes::ProcessOutcomes;
use crate::machine_spec::MachineSpec;
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
    disk: DiskState,
    clock: WallClock,
}

/// What a machine produces: timers for itself, and events for its worker daemon.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) timers: Vec<(Time, RankTimer)>,
    pub(crate) events: Vec<WorkerEvent>,
    /// Work that jobs had left when they saved a checkpoint, in seconds alone. All machines share the disk
    /// that holds it.
    pub(crate) saved: Vec<(JobId, f64)>,
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
    /// No process of the rank is left, and its outcome is written.
    Over,
    /// The rank reports its progress, unless its reports have started anew since.
    Progress { restarts: u64 },
    /// It has loaded the checkpoint of an earlier attempt.
    Loaded,
    /// The executor has waited for a daemon long enough, unless one has contacted it since.
    OrphanStop { leases: u64 },
}

impl Outbox {
    fn schedule(&mut self, at: Time, rank: RankId, kind: RankTimerKind) {
        self.timers.push((at, RankTimer { rank, kind }));
    }
}

impl SimMachine {
    pub(crate) fn new(shape: MachineSpec, hardware: Hardware, orphan_grace: Span) -> SimMachine {
        SimMachine {
            gpu_kind: GpuKind::named(&shape.model),
            shape,
            hardware,
            orphan_grace,
            processes: BTreeMap::new(),
            gpus: GpuStates::default(),
            accounts: ProcessOutcomes::default(),
            disk: DiskState::default(),
            clock: WallClock::default(),
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
        let process = RankProcess::new(start, conditions);
        self.check_access(rank, &process)?;
        out.schedule(now + process.program.start.result().0, rank, RankTimerKind::Start);
        match self.processes.insert(rank, Box::new(process)) {
            Some(earlier) => Err(format!("{} is spawned again", describe(rank, &earlier))),
            None => Ok(()),
        }
    }

    /// Records how far the stop sequence of a rank is, as its executor does.
    pub(crate) fn record_stop(&mut self, rank: RankId, stopping: Stopping) {
        if let Some(process) = self.processes.get_mut(&rank).filter(|process| process.runs()) {
            process.stopping = Some(stopping);
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

    /// Sends a signal to the processes of a running rank.
    pub(crate) fn signal(&mut self, now: Time, rank: RankId, signal: Signal, out: &mut Outbox) {
        let Some(process) = self.processes.get_mut(&rank).filter(|process| process.runs()) else { return };
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

    /// Kills a rank that its executor has not started in time. One that runs has been sent SIGKILL before;
    /// what delays its end is not its executor.
    pub(crate) fn kill(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        if self.processes.get(&rank).is_some_and(|process| process.state == ProcessState::Starting) {
            self.fail_start(now, rank, StartFailure::Other("it was not started in time".into()), out);
        }
    }

    /// Tells the executor of a rank whether a worker daemon holds it. An orphan is stopped after the orphan
    /// grace.
    pub(crate) fn lease(&mut self, now: Time, rank: RankId, lease: Lease, out: &mut Outbox) {
        let Some(process) = self.processes.get_mut(&rank).filter(|process| process.is_live()) else { return };
        let orphaned = lease == Lease::Orphaned;
        if process.orphaned() == orphaned {
            return;
        }
        process.leases += 1;
        if orphaned {
            out.schedule(now + self.orphan_grace, rank, RankTimerKind::OrphanStop { leases: process.leases });
        }
    }

    /// Deletes the outcome of an ended rank, which the head has acknowledged.
    pub(crate) fn forget(&mut self, rank: RankId) {
        if self.processes.get(&rank).is_some_and(|process| !process.is_live()) {
            self.processes.remove(&rank);
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
            RankTimerKind::Over => self.finish(now, rank, out),
            RankTimerKind::Progress { restarts } if process.reporting.restarts == restarts => {
                self.progress(now, rank, out);
            }
            RankTimerKind::Loaded => self.finish_loading(now, rank, out),
            RankTimerKind::OrphanStop { leases } if process.leases == leases && process.orphaned() => {
                self.stop_orphan(now, rank, out);
            }
            RankTimerKind::Start
            | RankTimerKind::Finish { .. }
            | RankTimerKind::Progress { .. }
            | RankTimerKind::OrphanStop { .. } => {}
        }
    }

    /// Reacts to the death of the worker daemon: executors notice it, and each interrupted start ends in a
    /// random way.
    pub(crate) fn daemon_died(&mut self, now: Time, random: &mut Random, out: &mut Outbox) {
        let live = self.processes.iter().filter(|(_, process)| process.is_live());
        for (rank, runs) in live.map(|(rank, process)| (*rank, process.runs())).collect::<Vec<_>>() {
            match (runs, random.pick(&InterruptedStart::ALL)) {
                (true, _) => self.lease(now, rank, Lease::Orphaned, out),
                (false, InterruptedStart::GoesOn) => {
                    self.start(now, rank, out);
                    self.lease(now, rank, Lease::Orphaned, out);
                }
                (false, InterruptedStart::Remains) => self.lose_rank(now, rank, "it left no outcome", out),
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
    pub(crate) fn find_ranks(&mut self) -> Vec<FoundRank> {
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

    /// Whether this rank runs or is starting.
    pub(crate) fn has_live_rank(&self, rank: RankId) -> bool {
        self.processes.get(&rank).is_some_and(|process| process.is_live())
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
    pub(crate) fn step_clock(&mut self, step: ClockStep) {
        self.clock.step(step);
    }

    /// Makes the disk slow: until this time, writing an outcome takes `write`.
    pub(crate) const fn slow_disk(&mut self, until: Time, write: Span) {
        self.disk.slow(until, write);
    }

    /// Makes the disk full until this time.
    pub(crate) const fn fill_disk(&mut self, until: Time) {
        self.disk.fill(until);
    }

    fn start(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let wall = self.clock.read(now);
        let start_failure = self.start_failure(now, rank);
        let hangs = self.processes.get(&rank).is_some_and(|process| self.has_lost_server(process));
        let Some(process) = self.processes.get_mut(&rank) else { return };
        let result = start_failure.map_or(process.program.start.result().1, Err);
        match result {
            Ok(()) => {
                process.state = ProcessState::Running(now);
                process.started_at = wall;
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
            }
            Err(failure) => self.fail_start(now, rank, failure, out),
        }
    }

    fn fail_start(&mut self, now: Time, rank: RankId, failure: StartFailure, out: &mut Outbox) {
        let wall = self.clock.read(now);
        let Some(process) = self.processes.get_mut(&rank) else { return };
        let outcome = Outcome::NotStarted(failure.clone());
        self.accounts.close(now, rank, process, &outcome);
        process.state = ProcessState::Ended(process.end_at(wall, outcome));
        out.events.push(WorkerEvent::SpawnFailed(rank, failure));
    }

    /// Why the machine cannot start this rank, if it cannot.
    fn start_failure(&self, now: Time, rank: RankId) -> Option<StartFailure> {
        let full = || StartFailure::NodeProblem("no space is left on its disk".into());
        self.disk.is_full(now).then(full).or_else(|| self.taken_port(rank).map(StartFailure::PortTaken))
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
