//! One rank on a simulated machine: its executor and the process that the executor runs.
//!
//! Its remaining work shrinks at a rate that the machine sets anew whenever the jobs on its devices change.

use cohabit_policy::JobCurve;
use cohabit_policy::interference::{SetMember, SoloMetrics};
use cohabit_types::{Enforcement, HeldRankPhase, JobSpec, Outcome, Progress, RankId, Span, Time};
use cohabit_worker_core::{FoundRank, GpuAccess, RankExit, RankStart};

use crate::machine::SimExecutor;
use crate::program::{MpsAttachment, ProgressReporting, SigtermBehaviour, SimProgram};
use crate::share_speed::{ShareSpeed, ShareSpeedTracker};
use crate::slowdown_tracker::SlowdownTracker;
use crate::wall_clock::WallClock;

/// A rank from its spawn until its outcome is acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct RankProcess {
    pub(crate) start: RankStart,
    pub(crate) program: SimProgram,
    pub(crate) state: ProcessState,
    /// When it began to run, by the machine's clock.
    pub(crate) started_at: Time,
    /// How its first process ended, until no process is left and the outcome is written.
    pub(crate) ending: Option<Outcome>,
    /// From this time on a power cut does not lose its outcome.
    pub(crate) flushed_at: Time,
    pub(crate) executor: SimExecutor,
    /// Whether none of its processes is left; its executor may still have to write down how it ended.
    pub(crate) is_gone: bool,
    /// When its first process ended, if its executor was suspended then.
    pub(crate) ended_at: Option<Time>,
    /// Whether all its processes were sent SIGKILL.
    pub(crate) is_killed: bool,
    /// Whether the daemon has killed it with its executor.
    pub(crate) is_killed_by_daemon: bool,
    /// Whether its executor is late with the start.
    pub(crate) starts_late: bool,
    /// Whether its machine is paused, or was while it ran.
    pub(crate) is_paused: bool,
    pub(crate) was_paused: bool,
    pub(crate) work: RemainingWork,
    /// The speed of its gang, as a fraction of the speed at the best placement.
    pub(crate) speed: f64,
    /// Whether it waits for a GPU that will never respond.
    pub(crate) hangs: bool,
    /// The work that was left when it began to save a checkpoint.
    pub(crate) saving: Option<f64>,
    /// Whether it has still to load the checkpoint of an earlier attempt.
    pub(crate) loading: bool,
    pub(crate) reporting: ReportSchedule,
    /// Its true behaviour beside others.
    pub(crate) member: SetMember,
    pub(crate) slowdown: SlowdownTracker,
    pub(crate) share_speed: ShareSpeedTracker,
    /// How fast it is with a share of its machine's cores and memory, where that matters.
    pub(crate) curve: Option<JobCurve>,
}

/// What a process finds when it starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StartConditions {
    /// The speed of its gang, as a fraction of the speed at the best placement.
    pub(crate) speed: f64,
    /// The work that the checkpoint of an earlier attempt leaves, in seconds alone.
    pub(crate) left: Option<f64>,
}

impl StartConditions {
    /// Full speed, from the beginning.
    #[cfg(test)]
    pub(crate) const IDEAL: StartConditions = StartConditions { speed: 1.0, left: None };
}

/// The shortest interval of reports at a quarter of the run time.
const SHORTEST_INTERVAL: Span = Span::from_secs(5);

/// When a process reports that reports adaptively.
///
/// A simulated process has a constant rate until the set of processes on its devices changes. A second report
/// confirms the first and adds nothing to it, so reports may become rare, although a program on a real
/// machine reports every few seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ReportSchedule {
    /// The last change of the set.
    since: Time,
    /// Counts these changes.
    pub(crate) restarts: u64,
}

impl ReportSchedule {
    /// The first report after a change; as long as the first sample of a worker.
    pub(crate) const FIRST: Span = Span::from_secs(10);

    /// Starts anew, because the set has changed.
    pub(crate) const fn restart(&mut self, now: Time) {
        *self = ReportSchedule { since: now, restarts: self.restarts + 1 };
    }

    /// Half of the time since the change: as many reports for a day as for its first five minutes.
    fn interval(&self, now: Time) -> Span {
        Span::from_micros(now.since(self.since).as_micros() / 2).max(ReportSchedule::FIRST)
    }
}

impl Default for ReportSchedule {
    fn default() -> ReportSchedule {
        ReportSchedule { since: Time::EPOCH, restarts: 0 }
    }
}

/// The state of a process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProcessState {
    Starting,
    Running(Time),
    Ended(RankExit),
}

/// The remaining work in seconds alone, and the rate at which it is done.
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

    /// Sets the rate, and returns when the work will be done if that has changed.
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
    /// Drops the environment: no simulated program reads it.
    pub(crate) fn new(
        mut start: RankStart,
        conditions: StartConditions,
        leased_at: Time,
        orphan_grace: Span,
    ) -> RankProcess {
        let executor = SimExecutor::new(&start, leased_at, orphan_grace);
        start.environment.clear();
        let program = SimProgram::of(&start.spec);
        let work = RemainingWork::new(conditions.left.unwrap_or(program.solo_duration.as_secs_f64()));
        let speed = conditions.speed;
        let loading = conditions.left.is_some() && program.restart_duration > Span::ZERO;
        let member = member(&start.spec, &program);
        RankProcess {
            start,
            program,
            state: ProcessState::Starting,
            started_at: Time::EPOCH,
            ending: None,
            flushed_at: Time::EPOCH,
            executor,
            is_gone: false,
            ended_at: None,
            is_killed: false,
            is_killed_by_daemon: false,
            starts_late: false,
            is_paused: false,
            was_paused: false,
            work,
            speed,
            hangs: false,
            saving: None,
            loading,
            reporting: ReportSchedule::default(),
            member,
            slowdown: SlowdownTracker::default(),
            share_speed: ShareSpeedTracker::default(),
            curve: None,
        }
    }

    /// Reacts to SIGTERM: when the process ends because of it, and how. A hanging process has nothing to
    /// save.
    pub(crate) fn terminate(&mut self, now: Time) -> Option<(Span, Outcome)> {
        if let (SigtermBehaviour::Checkpoints(span), true) = (self.program.on_term, self.hangs) {
            return Some((span, Outcome::Exited(1)));
        }
        if let SigtermBehaviour::Checkpoints(_) = self.program.on_term {
            self.saving = self.saving.or(Some(self.work.left_at(now).max(0.0)));
        }
        self.program.on_term.end()
    }

    /// The work left by the checkpoint that it saved, if it ended because of that.
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

    /// Whether it ended badly without a recorded reason for a stop.
    pub(crate) const fn ended_unexplained(&self) -> bool {
        match &self.state {
            ProcessState::Starting | ProcessState::Running(_) => false,
            ProcessState::Ended(ending) => !ending.outcome.succeeded() && ending.stopped.is_none(),
        }
    }

    /// Whether processes of it may run. After a pause of the machine, not if it was sent SIGKILL: it does
    /// nothing any more.
    pub(crate) const fn may_run(&self) -> bool {
        !(self.is_gone || self.was_paused && self.is_killed)
    }

    /// The exit that its executor writes, by the machine's clock.
    pub(crate) fn end_at(&self, wall: Time, outcome: Outcome) -> RankExit {
        RankExit { outcome, stopped: self.executor.stop.stopping().map(|stopping| stopping.why), at: wall }
    }

    /// Whether it does no work at present.
    pub(crate) const fn is_idle(&self) -> bool {
        self.hangs || self.loading || self.saving.is_some() || self.ending.is_some() || self.is_paused
    }

    /// The progress that it reports.
    pub(crate) fn progress(&self, now: Time, clock: WallClock) -> Progress {
        let alone = self.program.solo_duration.as_secs_f64().max(1e-9);
        let done = 1.0 - self.work.left_at(now) / alone;
        let steps = self.program.steps;
        Progress {
            step: (done.clamp(0.0, 1.0) * steps as f64).round() as u64,
            total: Some(steps),
            rate: (self.work.rate > 0.0).then(|| self.work.rate * steps as f64 / alone),
            at: clock.read(now),
            ..Progress::default()
        }
    }

    /// Whether its reports depend on the set of processes on its devices. The first rank reports for a gang.
    pub(crate) fn reports_adaptively(&self) -> bool {
        self.program.reports == ProgressReporting::Adaptive && self.start.rank.rank == 0
    }

    /// The time to its next report, if it reports.
    pub(crate) fn next_report(&self, now: Time) -> Option<Span> {
        let quarter = || Span::from_secs_f64(self.program.solo_duration.as_secs_f64() / 4.0);
        match self.program.reports {
            ProgressReporting::Progress => Some(quarter().max(SHORTEST_INTERVAL)),
            ProgressReporting::Adaptive => self.reports_adaptively().then(|| self.reporting.interval(now)),
            ProgressReporting::Never => None,
        }
    }

    /// What a starting worker daemon finds of it; `None` while the process is starting.
    pub(crate) fn found(&self) -> Option<FoundRank> {
        let (started_at, ending) = match &self.state {
            ProcessState::Starting => return None,
            ProcessState::Running(_) => (self.started_at, None),
            ProcessState::Ended(ending) => (ending.at, Some(ending.clone())),
        };
        let stopping = self.executor.stop.stopping().filter(|_| ending.is_none());
        Some(FoundRank { start: self.start.clone(), started_at, stopping, ending, progress: None })
    }

    /// Whether its limits on a GPU are observed to be enforced, if it should be an MPS client.
    pub(crate) fn enforcement(&self) -> Option<Enforcement> {
        match (self.start.access, self.program.mps_attachment) {
            (GpuAccess::Mps(_), MpsAttachment::Always) => Some(Enforcement::Enforced),
            (GpuAccess::Mps(_), MpsAttachment::Never) => {
                Some(Enforcement::Unenforced("it is no client of the MPS server".into()))
            }
            (GpuAccess::None | GpuAccess::Exclusive | GpuAccess::TimeSliced(_), _) => None,
        }
    }

    /// Its device time until now, with its speed by its share.
    pub(crate) fn share_speed_at(&self, now: Time) -> ShareSpeed {
        let devices = self.start.share.as_f64() * self.start.devices.len() as f64;
        self.share_speed.total_at(self.ended_at.unwrap_or(now)).on_devices(devices)
    }

    /// Device time that it has used until now: thousandths of a device, times microseconds.
    pub(crate) fn device_time(&self, now: Time) -> u64 {
        let ProcessState::Running(started_at) = self.state else { return 0 };
        let until = self.ended_at.unwrap_or(now);
        until.since(started_at).as_micros() * u64::from(self.start.share.0) * self.start.devices.len() as u64
    }
}

/// The model that it trains, from its description, and its utilization of a device.
fn member(spec: &JobSpec, program: &SimProgram) -> SetMember {
    let model = spec.model.as_ref();
    SetMember {
        model: model.and_then(|model| model.name.clone()).unwrap_or_default(),
        batch: model.and_then(|model| model.batch_size),
        solo: SoloMetrics { utilization: Some(program.busy), ..SoloMetrics::default() },
        ..SetMember::default()
    }
}

/// What becomes of a rank whose start was interrupted by the death of its worker daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InterruptedStart {
    /// The executor had its orders and starts the rank.
    GoesOn,
    /// A directory without an outcome remains.
    Remains,
    /// No trace remains.
    Vanishes,
}

impl InterruptedStart {
    pub(crate) const ALL: [InterruptedStart; 3] =
        [InterruptedStart::GoesOn, InterruptedStart::Remains, InterruptedStart::Vanishes];
}

/// Describes a rank and its state for messages.
pub(crate) fn describe(rank: RankId, process: &RankProcess) -> String {
    let phase = match &process.state {
        ProcessState::Starting => HeldRankPhase::Starting,
        ProcessState::Running(since) => HeldRankPhase::Running(*since),
        ProcessState::Ended(_) => HeldRankPhase::Ended,
    };
    format!("{rank} ({phase:?})")
}
