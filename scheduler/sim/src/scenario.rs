//! Everything about a run that is decided beforehand: machines, jobs, and what happens to them from
//! outside.
//!
//! What is drawn while it runs (delays above all) comes from the seed. A scenario without faults and with
//! the submissions of a trace is an evaluation.

use cohabit_scheduler_core::Config;
use cohabit_types::{Bytes, DependencyKind, JobChange, JobSpec, Span, Time};

use cohabit_policy::interference::InterferenceContext;

use crate::machine::{Disk, FaultAttribution, Hardware, ObservedMemory};
use crate::machine_spec::MachineSpec;
use crate::planted_bug::PlantedBug;
use crate::wall_clock::ClockStep;

/// A cluster and its fate.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The machines.
    pub shapes: Vec<MachineSpec>,
    /// What is true of their devices.
    pub hardware: Hardware,
    /// The head's settings.
    pub config: Config,
    /// The policy's name.
    pub policy: String,
    /// What it knows of jobs beside each other, if it asks.
    pub knowledge: InterferenceContext,
    /// How long an executor waits for somebody to come.
    pub orphan_grace: Span,
    /// What workers say of that; the truth, unless they are to lie.
    pub announced_grace: Option<Span>,
    /// How often workers report progress.
    pub heartbeat: Span,
    /// The head takes a snapshot after so many events.
    pub snapshot_every: usize,
    /// How long messages travel.
    pub delay: (Span, Span),
    /// How long the policy thinks.
    pub planning: (Span, Span),
    /// If it thinks for longer than this, first come, first served answers in its place.
    pub planning_limit: Span,
    /// How long the head's journal takes to make a batch of events durable.
    pub commit: (Span, Span),
    /// A bug that is planted around the production cores, to see whether it is caught.
    pub plant: Option<PlantedBug>,
    /// The jobs, in the order of submission.
    pub submissions: Vec<ScenarioSubmission>,
    /// What happens from outside.
    pub acts: Vec<(Time, ExternalEvent)>,
    /// From here on nothing bad happens, all that is endless is cancelled, and all that was accepted has to
    /// end.
    pub quiet_at: Time,
    /// How long the end may take from there.
    pub patience: Span,
    /// What is looked at meanwhile.
    pub watch: CheckLevel,
}

/// What is looked at while a cluster runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckLevel {
    /// Every promise, after every event; the run ends some time after all has become quiet.
    Everything,
    /// Only what becomes of the jobs; the run ends with the last of them. Nothing is journaled, so no crash
    /// of the head can be survived.
    Outcomes,
}

/// A job that somebody submits.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioSubmission {
    /// The job; what it depends on is added when it is submitted.
    pub spec: JobSpec,
    /// Who submits it.
    pub user: String,
    /// Earlier submissions that it depends on.
    pub after: Vec<(usize, DependencyKind)>,
}

/// Something that happens from outside.
#[derive(Debug, Clone, PartialEq)]
pub enum ExternalEvent {
    /// This submission is made.
    Submit(usize),
    /// A change of one of the jobs accepted so far.
    Change {
        /// Which change.
        change: JobChange,
        /// Which of the jobs: so many before the last one, and round again.
        back: u64,
    },
    /// A node shall get no new jobs.
    Drain(usize),
    /// A node shall get jobs again.
    Resume(usize),
    /// The head dies and comes back.
    CrashHead {
        /// So many more events are handled: of the effects of the first only some are carried out, then
        /// none.
        effects_lost: u32,
        /// How long it is gone.
        down_for: Span,
    },
    /// A worker daemon dies and comes back; its executors live on.
    CrashWorker {
        /// Where.
        node: usize,
        /// How long it is gone.
        down_for: Span,
    },
    /// A machine goes down with everything on it.
    CrashMachine {
        /// Which.
        node: usize,
        /// How long it is gone; without it, until somebody sets it up anew.
        down_for: Option<Span>,
        /// What its disk keeps.
        disk: Disk,
    },
    /// A worker's link breaks, and no new one can be made for a while.
    Cut {
        /// Whose.
        node: usize,
        /// For how long.
        length: Span,
        /// When the head notices.
        head_notices: Span,
        /// When the worker notices.
        worker_notices: Span,
    },
    /// A worker hangs up and dials again, so many times, without waiting for an answer: its greetings arrive
    /// in any order.
    Redial {
        /// Whose.
        node: usize,
        /// How often.
        times: u32,
        /// What was sent over a link may arrive so much later.
        lag: Span,
    },
    /// The head's journal is slow for a while.
    SlowJournal {
        /// For how long.
        length: Span,
        /// How long each batch takes.
        commit: Span,
    },
    /// The disk of the head's journal is full for a while.
    FillJournal {
        /// For how long.
        length: Span,
    },
    /// The policy gives no answer for a while, and hears of nothing.
    StallPolicy {
        /// For how long.
        length: Span,
    },
    /// A machine's disk is slow for a while: how a rank ended is told later.
    SlowDisk {
        /// Whose.
        node: usize,
        /// For how long.
        length: Span,
        /// How long it takes to write down how a rank ended.
        write: Span,
    },
    /// A machine's disk is full for a while: no rank starts there.
    FillDisk {
        /// Whose.
        node: usize,
        /// For how long.
        length: Span,
    },
    /// Somebody sets the clock of the head's machine.
    StepHeadClock(ClockStep),
    /// Somebody sets a machine's clock: those on it go by that from its next start on.
    StepClock {
        /// Whose.
        node: usize,
        /// By how much.
        step: ClockStep,
    },
    /// An executor is killed, and nothing else; where no worker daemon runs, nobody does that.
    KillExecutor {
        /// Where.
        node: usize,
        /// Which: so many behind the first that holds a rank, and round again.
        number: usize,
    },
    /// An MPS server breaks, and its clients with it.
    BreakMps {
        /// Where; on the next machine if none is active there, and round again.
        node: usize,
        /// Which: so many behind the first of those that are active, and round again. In the same way it
        /// says which of its clients is the culprit.
        number: usize,
        /// Whom its log blames.
        blame: FaultAttribution,
    },
    /// A GPU does not answer any more, until the worker daemon is started anew.
    LoseGpu {
        /// Where.
        node: usize,
        /// Which: so many behind the first, and round again.
        number: usize,
    },
    /// The driver reports a critical error.
    Xid {
        /// Where.
        node: usize,
        /// Of which GPU: so many behind the first, and round again.
        number: usize,
        /// Its number.
        code: u64,
    },
    /// The worker daemon looks at its GPUs.
    Look {
        /// Where.
        node: usize,
        /// Memory that it sees strangers hold on each of them.
        strangers: Bytes,
        /// How much it sees ranks hold.
        appetite: ObservedMemory,
    },
}

impl Scenario {
    /// A calm cluster of these machines, with nothing to do.
    #[must_use]
    pub fn calm(shapes: Vec<MachineSpec>) -> Scenario {
        Scenario {
            shapes,
            hardware: Hardware::default(),
            config: Config::default(),
            policy: "fifo".into(),
            knowledge: InterferenceContext::default(),
            orphan_grace: Span::from_secs(120),
            announced_grace: None,
            heartbeat: Span::from_secs(5),
            snapshot_every: 100,
            delay: (Span::from_micros(100), Span::from_millis(2)),
            planning: (Span::from_millis(1), Span::from_millis(5)),
            planning_limit: Span::from_secs(30),
            commit: (Span::ZERO, Span::ZERO),
            plant: None,
            submissions: Vec::new(),
            acts: Vec::new(),
            quiet_at: Time::EPOCH,
            patience: Span::from_secs(10 * 86_400),
            watch: CheckLevel::Everything,
        }
    }

    /// Somebody submits this job.
    #[must_use]
    pub fn submit(mut self, at: Time, spec: JobSpec) -> Scenario {
        self.acts.push((at, ExternalEvent::Submit(self.submissions.len())));
        self.submissions.push(ScenarioSubmission { spec, user: "ada".into(), after: Vec::new() });
        self
    }

    /// Something happens from outside.
    #[must_use]
    pub fn act(mut self, at: Time, act: ExternalEvent) -> Scenario {
        self.acts.push((at, act));
        self
    }

    /// Nothing bad happens from here on.
    #[must_use]
    pub fn quiet(self, quiet_at: Time) -> Scenario {
        Scenario { quiet_at, ..self }
    }
}
