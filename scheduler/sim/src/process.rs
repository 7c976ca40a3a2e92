//! One rank on a fake machine: its executor and the process that the executor holds.
//!
//! Its work shrinks at a rate that the machine sets anew whenever the company on its devices changes.

use cohabit_policy::interference::{SetMember, SoloMetrics};
use cohabit_types::{Enforcement, HeldRankPhase, JobSpec, Outcome, Progress, RankId, Span, Time};
use cohabit_worker_core::{FoundRank, GpuAccess, RankExit, RankStart, Stopping};

use crate::program::{MpsAttachment, ProgressReporting, SigtermBehaviour, SimProgram};
use crate::slowdown_tracker::SlowdownTracker;
use crate::wall_clock::WallClock;

/// A rank that was spawned, until its outcome is forgotten.
#[derive(Debug, Clone)]
pub(crate) struct RankProcess {
    pub(crate) start: RankStart,
    pub(crate) program: SimProgram,
    pub(crate) state: ProcessState,
    /// When it began to run, by the machine's clock.
    pub(crate) started_at: Time,
    /// How its first process ended, until nothing of it is left and that is written down.
    pub(crate) ending: Option<Outcome>,
    /// From when on no power cut takes its outcome.
    pub(crate) flushed_at: Time,
    /// Counts how often the executor's clock was started or stopped; it runs at odd numbers.
    pub(crate) leases: u64,
    /// How far its stop is, as far as its executor knows.
    pub(crate) stopping: Option<Stopping>,
    pub(crate) work: RemainingWork,
    /// How fast its gang is where it lies, as a part of its best pace.
    pub(crate) speed: f64,
    /// Whether it waits for a GPU that will never answer it.
    pub(crate) hangs: bool,
    /// The work that was left when it began to save it.
    pub(crate) saving: Option<f64>,
    /// What is true of it beside others.
    pub(crate) member: SetMember,
    pub(crate) slowdown: SlowdownTracker,
}

/// What a process finds when it starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StartConditions {
    /// How fast its gang is where it lies, as a part of its best pace.
    pub(crate) speed: f64,
    /// The work that an earlier attempt left to do, if it saved the rest: in seconds alone.
    pub(crate) left: Option<f64>,
}

impl StartConditions {
    /// At its best pace, from the beginning.
    #[cfg(test)]
    pub(crate) const IDEAL: StartConditions = StartConditions { speed: 1.0, left: None };
}

/// How far a process is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProcessState {
    Starting,
    Running(Time),
    Ended(RankExit),
}

/// What is left to do, in seconds alone, and how fast it is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RemainingWork {
    left: f64,
    rate: f64,
    as_of: Time,
    /// Counts the changes of the rate.
    pub(crate) timing: u64,
}

impl RemainingWork {
    const fn new(solo_duration: f64) -> RemainingWork {
        RemainingWork { left: solo_duration, rate: 0.0, as_of: Time::EPOCH, timing: 0 }
    }

    /// Sets the rate; answers when the work will be done, if that has changed.
    pub(crate) fn retime(&mut self, now: Time, rate: f64) -> Option<Time> {
        if rate == self.rate {
            return None;
        }
        *self = RemainingWork { left: self.left_at(now), rate, as_of: now, timing: self.timing + 1 };
        (rate > 0.0).then(|| now + Span::from_secs_f64(self.left / rate))
    }

    pub(crate) fn left_at(&self, now: Time) -> f64 {
        self.left - self.rate * now.since(self.as_of).as_secs_f64()
    }
}

impl RankProcess {
    /// What it finds in its environment is not kept: no program here looks at it.
    pub(crate) fn new(mut start: RankStart, conditions: StartConditions) -> RankProcess {
        start.environment.clear();
        let program = SimProgram::of(&start.spec);
        let work = RemainingWork::new(conditions.left.unwrap_or(program.solo_duration.as_secs_f64()));
        let speed = conditions.speed;
        let member = member(&start.spec, &program);
        RankProcess {
            start,
            program,
            state: ProcessState::Starting,
            started_at: Time::EPOCH,
            ending: None,
            flushed_at: Time::EPOCH,
            leases: 0,
            stopping: None,
            work,
            speed,
            hangs: false,
            saving: None,
            member,
            slowdown: SlowdownTracker::default(),
        }
    }

    /// SIGTERM came: when it ends because of that, and how. What hangs has nothing to save.
    pub(crate) fn terminate(&mut self, now: Time) -> Option<(Span, Outcome)> {
        if let (SigtermBehaviour::Checkpoints(span), true) = (self.program.on_term, self.hangs) {
            return Some((span, Outcome::Exited(1)));
        }
        if let SigtermBehaviour::Checkpoints(_) = self.program.on_term {
            self.saving = self.saving.or(Some(self.work.left_at(now).max(0.0)));
        }
        self.program.on_term.end()
    }

    /// The work that it saved for the next attempt, if it ended because of that.
    pub(crate) fn saved(&self, outcome: &Outcome) -> Option<f64> {
        let speaks = self.start.rank.rank == 0 && outcome.succeeded();
        self.saving.filter(|_| speaks)
    }

    pub(crate) const fn is_live(&self) -> bool {
        match self.state {
            ProcessState::Starting | ProcessState::Running(_) => true,
            ProcessState::Ended(_) => false,
        }
    }

    pub(crate) const fn runs(&self) -> bool {
        matches!(self.state, ProcessState::Running(_))
    }

    /// Whether it ended badly, and nothing says that it was stopped.
    pub(crate) const fn ended_unexplained(&self) -> bool {
        match &self.state {
            ProcessState::Starting | ProcessState::Running(_) => false,
            ProcessState::Ended(ending) => !ending.outcome.succeeded() && ending.stopped.is_none(),
        }
    }

    pub(crate) const fn orphaned(&self) -> bool {
        self.leases % 2 == 1
    }

    /// What its executor writes down, by the machine's clock.
    pub(crate) fn end_at(&self, wall: Time, outcome: Outcome) -> RankExit {
        RankExit { outcome, stopped: self.stopping.map(|stopping| stopping.why), at: wall }
    }

    /// How far it is by its own word.
    pub(crate) fn progress(&self, now: Time, clock: WallClock) -> Progress {
        let done = 1.0 - self.work.left_at(now) / self.program.solo_duration.as_secs_f64().max(1e-9);
        let steps = self.program.steps;
        Progress {
            step: (done.max(0.0) * steps as f64) as u64,
            total: Some(steps),
            at: clock.read(now),
            ..Progress::default()
        }
    }

    /// How often it says so, if it does.
    pub(crate) fn progress_every(&self) -> Option<Span> {
        match self.program.reports {
            ProgressReporting::Progress => Some(
                Span::from_secs_f64(self.program.solo_duration.as_secs_f64() / 4.0).max(Span::from_secs(5)),
            ),
            ProgressReporting::Never => None,
        }
    }

    /// What a worker daemon finds of it on its start; nothing of a process that is not yet there.
    pub(crate) fn found(&self) -> Option<FoundRank> {
        let (started_at, ending) = match &self.state {
            ProcessState::Starting => return None,
            ProcessState::Running(_) => (self.started_at, None),
            ProcessState::Ended(ending) => (ending.at, Some(ending.clone())),
        };
        let stopping = self.stopping.filter(|_| ending.is_none());
        Some(FoundRank { start: self.start.clone(), started_at, stopping, ending, progress: None })
    }

    /// Whether its limits on a GPU are seen to be enforced, where it is a client of an MPS server.
    pub(crate) fn enforcement(&self) -> Option<Enforcement> {
        match (self.start.access, self.program.mps_attachment) {
            (GpuAccess::Mps(_), MpsAttachment::Always) => Some(Enforcement::Enforced),
            (GpuAccess::Mps(_), MpsAttachment::Never) => {
                Some(Enforcement::Unenforced("it is no client of the MPS server".into()))
            }
            (GpuAccess::None | GpuAccess::Exclusive | GpuAccess::TimeSliced(_), _) => None,
        }
    }

    /// Device time that it used until now, in thousandths of a device times microseconds.
    pub(crate) fn device_time(&self, now: Time) -> u64 {
        let ProcessState::Running(started_at) = self.state else { return 0 };
        now.since(started_at).as_micros() * u64::from(self.start.share.0) * self.start.devices.len() as u64
    }
}

/// What it trains, as far as its description tells, and how busy it keeps a device.
fn member(spec: &JobSpec, program: &SimProgram) -> SetMember {
    let model = spec.model.as_ref();
    SetMember {
        model: model.and_then(|model| model.name.clone()).unwrap_or_default(),
        batch: model.and_then(|model| model.batch_size),
        solo: SoloMetrics { utilisation: Some(program.busy), ..SoloMetrics::default() },
        ..SetMember::default()
    }
}

/// What becomes of a rank whose start the death of its worker daemon cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InterruptedStart {
    /// The executor had got its orders and starts it nevertheless.
    GoesOn,
    /// A folder without an outcome is left.
    Remains,
    /// No trace is left.
    Vanishes,
}

impl InterruptedStart {
    pub(crate) const ALL: [InterruptedStart; 3] =
        [InterruptedStart::GoesOn, InterruptedStart::Remains, InterruptedStart::Vanishes];
}

/// For messages: the rank and how far it is.
pub(crate) fn describe(rank: RankId, process: &RankProcess) -> String {
    let phase = match &process.state {
        ProcessState::Starting => HeldRankPhase::Starting,
        ProcessState::Running(since) => HeldRankPhase::Running(*since),
        ProcessState::Ended(_) => HeldRankPhase::Ended,
    };
    format!("{rank} ({phase:?})")
}
