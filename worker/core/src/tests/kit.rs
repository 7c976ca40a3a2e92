//! Test helpers: a worker, events for it, and the complete list of its effects.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{
    AttemptId, Bytes, CodeSnapshot, ContentHash, Device, DeviceId, DeviceKind, JobId, JobSpec, Order,
    Outcome, Progress, RankId, RankRun, Rendezvous, Report, Role, RunOrder, Share, Signal, Span,
    StartFailure, StopReason, Time, WarningSignal,
};

use crate::{
    Config, FoundRank, GpuAccess, Lease, RankExit, RankStart, SignalTarget, StopStep, Stopping, Worker,
    WorkerEffect, WorkerEvent,
};

/// A worker, the time, and what it did since the last look.
pub(super) struct TestWorker {
    pub(super) worker: Worker,
    now: Time,
    pub(super) effects: Vec<WorkerEffect>,
    /// Why executors know that their ranks are being stopped.
    stop_reasons: BTreeMap<RankId, StopReason>,
    signals: Vec<Signal>,
    /// What the rank of job 1 has taken.
    pub(super) processor_time: Span,
}

/// The attempt that most tests are about.
pub(super) const ATTEMPT: AttemptId = JobId::new(7).attempt(1);
/// Its only, or first, rank.
pub(super) const RANK: RankId = ATTEMPT.rank(0);

pub(super) const fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

pub(super) const fn at(secs: u64) -> Time {
    Time::from_micros(secs * 1_000_000)
}

pub(super) fn spec() -> JobSpec {
    JobSpec::command(vec!["/bin/train".into()], "/home/ada".into())
}

/// A snapshot of the code of these jobs.
pub(super) fn code() -> CodeSnapshot {
    CodeSnapshot { manifest: ContentHash([1; 32]), folder: "/home/ada".into(), files: 1, bytes: Bytes(8) }
}

/// A job with a time limit, a warning ahead of SIGTERM, and a grace of 30 s.
pub(super) fn limited(limit: u64, warning: Option<u64>) -> JobSpec {
    let mut spec = spec();
    spec.time_limit = Some(secs(limit));
    spec.stop.warning = warning.map(|before| WarningSignal { signal: Signal::USR1, before: secs(before) });
    spec
}

/// An order for the given number of ranks, each with a device of its own.
pub(super) fn order(spec: JobSpec, ranks: u32) -> RunOrder {
    let run = |rank| RankRun {
        rank,
        local_rank: rank,
        node_rank: 0,
        devices: vec![DeviceId(format!("gpu-{rank}").into())],
        share: Share::WHOLE,
    };
    RunOrder {
        attempt: ATTEMPT,
        spec: spec.into(),
        user: "ada".into(),
        account: "ada".into(),
        role: Role::User,
        nodes: vec!["10.0.0.1".into()],
        application: None,
        place: None,
        checkpoints: None,
        idle_after: None,
        after: None,
        world_size: ranks,
        rendezvous: Some(Rendezvous { address: "10.0.0.1".into(), port: 29_600 }),
        ranks: (0..ranks).map(run).collect(),
    }
}

pub(super) fn step(step: u64) -> Progress {
    Progress { step, ..Progress::default() }
}

pub(super) fn started(rank: RankId, secs: u64) -> WorkerEffect {
    WorkerEffect::Report(Report::Started { rank, at: at(secs) })
}

pub(super) fn ended(rank: RankId, outcome: Outcome, stopped: Option<StopReason>, secs: u64) -> WorkerEffect {
    WorkerEffect::Report(Report::Ended {
        rank,
        outcome,
        stopped,
        progress: None,
        at: at(secs),
        usage: Vec::new(),
    })
}

/// A stop for this reason whose next step comes at this second.
pub(super) const fn stopping(why: StopReason, next: StopStep, secs: u64) -> Stopping {
    Stopping { why, next, due_at: at(secs) }
}

/// SIGTERM, with SIGKILL to follow at this second.
pub(super) fn term(rank: RankId, why: StopReason, kill_at: u64) -> Vec<WorkerEffect> {
    let signal = |signal| WorkerEffect::Signal(rank, signal, SignalTarget::Group);
    let stopping = WorkerEffect::Stopping(rank, stopping(why, StopStep::Kill, kill_at));
    vec![stopping, signal(Signal::TERM), signal(Signal::CONT)]
}

/// SIGKILL, to be sent again ten seconds after this one.
pub(super) fn kill(rank: RankId, why: StopReason, now: u64) -> Vec<WorkerEffect> {
    let stopping = WorkerEffect::Stopping(rank, stopping(why, StopStep::Kill, now + 10));
    vec![stopping, WorkerEffect::Signal(rank, Signal::KILL, SignalTarget::Everything)]
}

/// The warning signal, with SIGTERM to follow at this second.
pub(super) fn warn(rank: RankId, why: StopReason, term_at: u64) -> Vec<WorkerEffect> {
    let stopping = WorkerEffect::Stopping(rank, stopping(why, StopStep::Terminate, term_at));
    vec![stopping, WorkerEffect::Signal(rank, Signal::USR1, SignalTarget::Group)]
}

pub(super) fn lease(rank: RankId, lease: Lease) -> WorkerEffect {
    WorkerEffect::Lease(rank, lease)
}

/// A rank that an earlier daemon started at second 10.
pub(super) fn found(spec: impl Into<Arc<JobSpec>>, ending: Option<RankExit>) -> FoundRank {
    let start = RankStart {
        rank: RANK,
        spec: spec.into(),
        user: "ada".into(),
        account: "ada".into(),
        role: Role::User,
        private_uid: None,
        devices: vec![DeviceId("gpu-0".into())],
        share: Share::WHOLE,
        access: GpuAccess::None,
        rendezvous_port: None,
        application: None,
        place: None,
        node_rank: 0,
        checkpoints: None,
        note: None,
        idle_after: None,
        environment: [].into(),
    };
    FoundRank { start, started_at: at(10), stopping: None, ending, progress: None }
}

/// Two devices of which none is a GPU.
pub(super) fn pseudo_devices() -> Vec<Device> {
    let slot = |id: &str| Device::new(DeviceId(id.into()), DeviceKind::Host, "host slot", None);
    vec![slot("gpu-0"), slot("gpu-1")]
}

impl TestWorker {
    /// A worker with two pseudo-devices and a heartbeat of 5 s, without a link.
    pub(super) fn unlinked() -> TestWorker {
        TestWorker::with(pseudo_devices())
    }

    /// The same with these devices.
    pub(super) fn with(devices: Vec<Device>) -> TestWorker {
        let worker = Worker::new(Config { heartbeat: secs(5), devices });
        TestWorker {
            worker,
            now: at(100),
            effects: Vec::new(),
            stop_reasons: BTreeMap::new(),
            signals: Vec::new(),
            processor_time: Span::ZERO,
        }
    }

    /// The same with a link; its time is 100 s.
    pub(super) fn linked() -> TestWorker {
        TestWorker::unlinked().link()
    }

    /// A linked worker with one running rank of this job, and nothing else said about it.
    pub(super) fn running(spec: JobSpec) -> TestWorker {
        TestWorker::linked().run(order(spec, 1)).spawned(0).forget_effects()
    }

    /// A linked worker with an attempt of two running ranks.
    pub(super) fn both_running() -> TestWorker {
        TestWorker::linked().run(order(spec(), 2)).spawned(0).spawned(1).forget_effects()
    }

    pub(super) fn event(mut self, event: WorkerEvent) -> TestWorker {
        if let WorkerEvent::Found(found) = &event {
            self.stop_reasons.extend(found.stopping.map(|stopping| (found.start.rank, stopping.why)));
        }
        let mut effects = Vec::new();
        self.worker.handle(self.now, event, &mut effects);
        self.worker.check();
        for effect in &effects {
            if let WorkerEffect::Stopping(rank, stopping) = effect {
                self.stop_reasons.insert(*rank, stopping.why);
            }
        }
        for effect in effects {
            if let WorkerEffect::Report(Report::SignalSent { signal, .. }) = effect {
                self.signals.push(signal);
            } else {
                self.effects.push(effect);
            }
        }
        self
    }

    pub(super) fn run(self, order: RunOrder) -> TestWorker {
        self.event(WorkerEvent::Order(Order::Run(Box::new(order))))
    }

    pub(super) fn spawned(self, rank: u32) -> TestWorker {
        self.event(WorkerEvent::Spawned(ATTEMPT.rank(rank)))
    }

    pub(super) fn spawn_failed(self, rank: u32, failure: StartFailure) -> TestWorker {
        self.event(WorkerEvent::SpawnFailed(ATTEMPT.rank(rank), failure))
    }

    pub(super) fn stop(self, why: StopReason) -> TestWorker {
        self.event(WorkerEvent::Order(Order::Stop { attempt: ATTEMPT, why }))
    }

    pub(super) fn exited(self, rank: u32, outcome: Outcome) -> TestWorker {
        self.ends(ATTEMPT.rank(rank), outcome)
    }

    /// A rank ended; its executor says what it was told.
    pub(super) fn ends(self, rank: RankId, outcome: Outcome) -> TestWorker {
        let ending = RankExit { outcome, stopped: self.stop_reasons.get(&rank).copied(), at: self.now };
        self.event(WorkerEvent::Exited(rank, ending))
    }

    pub(super) fn acknowledge(self, rank: u32) -> TestWorker {
        self.event(WorkerEvent::Order(Order::Acknowledge(ATTEMPT.rank(rank))))
    }

    pub(super) fn progress(self, rank: u32, progress: Progress) -> TestWorker {
        self.event(WorkerEvent::Progress(ATTEMPT.rank(rank), progress))
    }

    pub(super) fn link(self) -> TestWorker {
        self.event(WorkerEvent::Linked)
    }

    pub(super) fn unlink(self) -> TestWorker {
        self.event(WorkerEvent::Unlinked)
    }

    /// Time goes on, with an alarm at every deadline on the way.
    pub(super) fn until(mut self, secs: u64) -> TestWorker {
        while let Some(due_at) = self.worker.deadline().filter(|due_at| *due_at <= at(secs)) {
            self.now = self.now.max(due_at);
            self = self.event(WorkerEvent::Alarm);
        }
        self.now = at(secs);
        self
    }

    /// What it did so far is what another test is about.
    pub(super) fn forget_effects(mut self) -> TestWorker {
        self.effects.clear();
        self
    }

    /// All that it did since the last look.
    pub(super) fn take_effects(&mut self) -> Vec<WorkerEffect> {
        std::mem::take(&mut self.effects)
    }

    /// The signals that it told the head of, in order.
    pub(super) fn reported_signals(&self) -> Vec<Signal> {
        self.signals.clone()
    }

    /// All that it did since the last look, and nothing else; signals are reported besides.
    #[track_caller]
    pub(super) fn does<E: Into<Vec<WorkerEffect>>>(mut self, expected: E) -> TestWorker {
        assert_eq!(self.take_effects(), expected.into());
        self
    }

    #[track_caller]
    pub(super) fn does_nothing(self) -> TestWorker {
        self.does([])
    }

    #[track_caller]
    pub(super) fn spawns(mut self, expected: &[RankId]) -> TestWorker {
        let spawned = self.take_effects().into_iter().map(|effect| {
            let WorkerEffect::Spawn(start) = &effect else { panic!("{effect:?} instead of a spawn") };
            start.rank
        });
        assert_eq!(spawned.collect::<Vec<_>>(), expected);
        self
    }
}
