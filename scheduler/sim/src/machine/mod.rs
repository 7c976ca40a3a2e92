//! A fake machine: devices, executors with their processes, and the outcomes that its disk keeps.
//!
//! It answers the effects of a worker core as a real machine would. Executors live on when the worker
//! daemon dies, and end their ranks themselves when nobody has reached them for too long. Nothing here
//! knows the head.

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
use crate::process::{InterruptedStart, ProcessState, RankProcess, StartConditions, shown};
use crate::random::Random;
use crate::wall_clock::{ClockStep, WallClock};

/// A machine and what runs on it.
#[derive(Debug)]
pub(crate) struct Machine {
    shape: MachineSpec,
    /// Of its devices.
    gpu_kind: GpuKind,
    hardware: Hardware,
    orphan_grace: Span,
    processes: BTreeMap<RankId, Box<RankProcess>>,
    gpus: GpuStates,
    accounts: ProcessOutcomes,
    disk: DiskState,
    clock: WallClock,
}

/// What a machine brings about: later happenings of its own, and events for the worker daemon.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) pulses: Vec<(Time, RankSignal)>,
    pub(crate) events: Vec<WorkerEvent>,
    /// Work that jobs left to do and saved the rest of, on a disk that all machines share.
    pub(crate) saved: Vec<(JobId, f64)>,
}

/// Something that happens to one rank on its machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankSignal {
    rank: RankId,
    beat: RankSignalKind,
}

#[derive(Debug, Clone, PartialEq)]
enum RankSignalKind {
    /// Its start is over.
    Start,
    /// Its work is done, unless it was timed anew.
    Finish { timing: u64 },
    /// Its first process ends because of a signal.
    End(Outcome),
    /// Nothing of it is left, and how it ended is written down.
    Over,
    /// It says how far it is.
    Progress,
    /// Its executor waited long enough, unless somebody came.
    OrphanStop { leases: u64 },
}

impl Outbox {
    fn pulse(&mut self, at: Time, rank: RankId, beat: RankSignalKind) {
        self.pulses.push((at, RankSignal { rank, beat }));
    }
}

impl Machine {
    pub(crate) fn new(shape: MachineSpec, hardware: Hardware, orphan_grace: Span) -> Machine {
        Machine {
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
    /// If it is there already, or comes to its GPUs as it must not.
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
        out.pulse(now + process.program.start.result().0, rank, RankSignalKind::Start);
        match self.processes.insert(rank, Box::new(process)) {
            Some(earlier) => Err(format!("{} is spawned again", shown(rank, &earlier))),
            None => Ok(()),
        }
    }

    /// The executor keeps how far the stop of its rank is.
    pub(crate) fn stopping(&mut self, rank: RankId, stopping: Stopping) {
        if let Some(process) = self.processes.get_mut(&rank).filter(|process| process.runs()) {
            process.stopping = Some(stopping);
        }
    }

    /// Its outcome on the disk says why it was stopped.
    pub(crate) fn explain(&mut self, rank: RankId, why: StopReason) {
        if let Some(ProcessState::Ended(ending)) =
            self.processes.get_mut(&rank).map(|process| &mut process.life)
        {
            ending.stopped = Some(why);
        }
    }

    pub(crate) fn signal(&mut self, now: Time, rank: RankId, signal: Signal, out: &mut Outbox) {
        let Some(process) = self.processes.get_mut(&rank).filter(|process| process.runs()) else { return };
        let end = match signal {
            Signal::KILL => Some((process.program.on_kill, Outcome::Signalled(Signal::KILL))),
            Signal::TERM => process.terminate(now),
            _ => None,
        };
        if let Some((delay, outcome)) = end {
            out.pulse(now + delay, rank, RankSignalKind::End(outcome));
        }
    }

    pub(crate) fn lease(&mut self, now: Time, rank: RankId, lease: Lease, out: &mut Outbox) {
        let Some(process) = self.processes.get_mut(&rank).filter(|process| process.is_live()) else { return };
        let orphaned = lease == Lease::Orphaned;
        if process.orphaned() == orphaned {
            return;
        }
        process.leases += 1;
        if orphaned {
            out.pulse(now + self.orphan_grace, rank, RankSignalKind::OrphanStop { leases: process.leases });
        }
    }

    pub(crate) fn forget(&mut self, rank: RankId) {
        if self.processes.get(&rank).is_some_and(|process| !process.is_live()) {
            self.processes.remove(&rank);
        }
    }

    pub(crate) fn pulse(&mut self, now: Time, pulse: RankSignal, out: &mut Outbox) {
        let rank = pulse.rank;
        let Some(process) = self.processes.get(&rank).filter(|process| process.is_live()) else { return };
        match pulse.beat {
            RankSignalKind::Start if process.life == ProcessState::Starting => self.start(now, rank, out),
            RankSignalKind::Finish { timing } if process.work.timing == timing => {
                let left = process.work.left_at(now);
                assert!(left.abs() < 1e-3, "{rank} is done with {left} s of its work left");
                self.end(now, rank, process.program.outcome(rank.attempt.attempt), out);
            }
            RankSignalKind::End(outcome) => self.end(now, rank, outcome, out),
            RankSignalKind::Over => self.over(now, rank, out),
            RankSignalKind::Progress => self.progress(now, rank, out),
            RankSignalKind::OrphanStop { leases } if process.leases == leases && process.orphaned() => {
                self.stop_orphan(now, rank, out);
            }
            RankSignalKind::Start | RankSignalKind::Finish { .. } | RankSignalKind::OrphanStop { .. } => {}
        }
    }

    /// The worker daemon died: executors notice, and starts that were under way end in one of several ways.
    pub(crate) fn daemon_died(&mut self, now: Time, random: &mut Random, out: &mut Outbox) {
        let live = self.processes.iter().filter(|(_, process)| process.is_live());
        for (rank, runs) in live.map(|(rank, process)| (*rank, process.runs())).collect::<Vec<_>>() {
            match (runs, random.pick(&InterruptedStart::ALL)) {
                (true, _) => self.lease(now, rank, Lease::Orphaned, out),
                (false, InterruptedStart::GoesOn) => {
                    self.start(now, rank, out);
                    self.lease(now, rank, Lease::Orphaned, out);
                }
                (false, InterruptedStart::Remains) => self.lose(now, rank, "it left no outcome", out),
                (false, InterruptedStart::Vanishes) => {
                    self.processes.remove(&rank);
                    self.accounts.forgotten.insert(rank);
                }
            }
        }
    }

    /// What a starting worker daemon finds. Where nobody saw why a client ended badly, its broken server
    /// tells; that is written down, for the server may be well again before the head has heard.
    pub(crate) fn found(&mut self) -> Vec<FoundRank> {
        let unseen = self.processes.values().filter(|process| process.ended_unexplained());
        let victims =
            unseen.filter(|process| self.has_lost_server(process)).map(|process| process.start.rank);
        for rank in victims.collect::<Vec<_>>() {
            self.explain(rank, StopReason::MpsFaultVictim);
        }
        self.processes.values().filter_map(|process| process.found()).collect()
    }

    /// What runs, or is about to.
    pub(crate) fn live(&self) -> impl Iterator<Item = (&RankId, &RankProcess)> {
        self.all().filter(|(_, process)| process.is_live())
    }

    /// Everything that it knows of.
    fn all(&self) -> impl Iterator<Item = (&RankId, &RankProcess)> {
        self.processes.iter().map(|(rank, process)| (rank, &**process))
    }

    /// Whether this rank runs, or is about to.
    pub(crate) fn lives(&self, rank: RankId) -> bool {
        self.processes.get(&rank).is_some_and(|process| process.is_live())
    }

    /// Whether nothing runs and nothing waits to be forgotten.
    pub(crate) fn is_clean(&self) -> bool {
        self.processes.is_empty()
    }

    pub(crate) const fn shape(&self) -> &MachineSpec {
        &self.shape
    }

    pub(crate) const fn accounts(&self) -> &ProcessOutcomes {
        &self.accounts
    }

    /// What time it is for its daemon and executors.
    pub(crate) fn wall(&self, now: Time) -> Time {
        self.clock.read(now)
    }

    /// Somebody sets its clock, which counts from its next start on.
    pub(crate) fn step_clock(&mut self, step: ClockStep) {
        self.clock.step(step);
    }

    /// For a while its disk takes so long for an outcome.
    pub(crate) const fn slow_disk(&mut self, until: Time, write: Span) {
        self.disk.slow(until, write);
    }

    /// For a while nothing new fits on its disk.
    pub(crate) const fn fill_disk(&mut self, until: Time) {
        self.disk.fill(until);
    }

    fn start(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let wall = self.clock.read(now);
        let find_start_failure = self.find_start_failure(now, rank);
        let hangs = self.processes.get(&rank).is_some_and(|process| self.has_lost_server(process));
        let Some(process) = self.processes.get_mut(&rank) else { return };
        let result = find_start_failure.map_or(process.program.start.result().1, Err);
        match result {
            Ok(()) => {
                process.life = ProcessState::Running(now);
                process.stamped = wall;
                process.hangs = hangs;
                if let Some(every) = process.progress_every() {
                    out.pulse(now + every, rank, RankSignalKind::Progress);
                }
                out.events.push(WorkerEvent::Spawned(rank));
                out.events.extend(process.enforcement().map(|known| WorkerEvent::Sharing(rank, known)));
                self.retime(now, rank, out);
                self.take_memory(now, rank, out);
            }
            Err(failure) => {
                let outcome = Outcome::NotStarted(failure.clone());
                self.accounts.close(now, rank, process, &outcome);
                process.life = ProcessState::Ended(process.end_at(wall, outcome));
                out.events.push(WorkerEvent::SpawnFailed(rank, failure));
            }
        }
    }

    /// What of the machine keeps this rank from starting, if anything does.
    fn find_start_failure(&self, now: Time, rank: RankId) -> Option<StartFailure> {
        let full = || StartFailure::NodeTrouble("no space is left on its disk".into());
        self.disk.is_full(now).then(full).or_else(|| self.taken_port(rank).map(StartFailure::PortTaken))
    }

    /// The port at which this rank is to listen, if another program does.
    fn taken_port(&self, rank: RankId) -> Option<u16> {
        let port = self.processes.get(&rank)?.start.rendezvous_port?;
        let listens = |other: &RankProcess| other.runs() && other.start.rendezvous_port == Some(port);
        (self.shape.is_foreign(port) || self.all().any(|(_, other)| listens(other))).then_some(port)
    }

    fn progress(&self, now: Time, rank: RankId, out: &mut Outbox) {
        let Some(process) = self.processes.get(&rank) else { return };
        out.events.push(WorkerEvent::Progress(rank, process.progress(now, self.clock)));
        if let Some(every) = process.progress_every() {
            out.pulse(now + every, rank, RankSignalKind::Progress);
        }
    }
}
