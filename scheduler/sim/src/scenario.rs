//! Everything about a run that is decided beforehand: machines, jobs, and external events.
//!
//! What is drawn during the run (message delays above all) comes from the seed. A scenario without faults and
//! with the submissions of a trace is an evaluation.

use std::sync::Arc;

use cohabit_scheduler_core::Config;
use cohabit_types::{Bytes, DependencyKind, JobChange, JobSpec, ReservationRequest, ShareTable, Span, Time};

use cohabit_policy::SensitivityProfiles;
use cohabit_policy::interference::InterferenceContext;

use crate::hostile::HostileRequest;
use crate::impostor::Lie;
use crate::machine::{Disk, FaultAttribution, Hardware, ObservedMemory};
use crate::machine_spec::MachineSpec;
use crate::planted_bug::PlantedBug;
use crate::wall_clock::ClockStep;

/// A cluster with its jobs and external events.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The machines.
    pub shapes: Vec<MachineSpec>,
    /// The true behaviour of their devices.
    pub hardware: Hardware,
    /// The configuration of the head.
    pub config: Config,
    /// The name of the policy.
    pub policy: String,
    /// What the policy may know of the interference between jobs.
    pub knowledge: InterferenceContext,
    /// What the policy may know of how much cores and host memory speed jobs up.
    pub sensitivity: Arc<SensitivityProfiles>,
    /// The seed of agents that decide at random, if the policy is one that agents decide.
    pub random_agents: Option<u64>,
    /// How long an executor waits for a worker daemon before it stops its rank.
    pub orphan_grace: Span,
    /// The orphan grace that workers report; the true one if `None`.
    pub announced_grace: Option<Span>,
    /// How often workers report progress.
    pub heartbeat: Span,
    /// The head takes a snapshot after this many events.
    pub snapshot_every: usize,
    /// Message delays: shortest and longest.
    pub delay: (Span, Span),
    /// Planning times of the policy: shortest and longest.
    pub planning: (Span, Span),
    /// If the policy takes longer than this, FIFO plans in its place.
    pub planning_limit: Span,
    /// How long the journal takes to make a batch of events durable: shortest and longest.
    pub commit: (Span, Span),
    /// A bug planted around the production cores, to test the checkers.
    pub plant: Option<PlantedBug>,
    /// The jobs, in the order of submission.
    pub submissions: Vec<ScenarioSubmission>,
    /// The external events with their times.
    pub external_events: Vec<(Time, ExternalEvent)>,
    /// From this time on there are no more faults, endless jobs are cancelled, and every accepted job has to
    /// end.
    pub quiet_at: Time,
    /// How long the run may take to end after that.
    pub end_timeout: Span,
    /// What is checked during the run.
    pub check_level: CheckLevel,
}

/// What is checked while a cluster runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckLevel {
    /// Every invariant, after every event. The run ends some time after the quiet phase has begun.
    Everything,
    /// Only the outcomes of the jobs. The run ends with the last job. Nothing is journaled, so the head
    /// cannot survive a crash.
    Outcomes,
}

/// A job to be submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioSubmission {
    /// The job; its dependencies are added when it is submitted.
    pub spec: JobSpec,
    /// The submitting user.
    pub user: String,
    /// Earlier submissions that it depends on, by index.
    pub after: Vec<(usize, DependencyKind)>,
    /// The submission, by index, of the root of which it is a child. It is submitted while an attempt of the
    /// root runs.
    pub parent: Option<usize>,
}

/// An event from outside the cluster.
#[derive(Debug, Clone, PartialEq)]
pub enum ExternalEvent {
    /// Submits the submission with this index.
    Submit(usize),
    /// Changes one of the jobs accepted so far.
    Change {
        /// The change.
        change: JobChange,
        /// Which job: this many before the last one, modulo their number.
        back: u64,
    },
    /// A request of a hostile user.
    Hostile(HostileRequest),
    /// A worker that lies joins, and is lost again.
    Impostor(Lie),
    /// Divides the cluster by this table from now on.
    ApplyShares(Box<ShareTable>),
    /// Reserves nodes.
    Reserve(Box<ReservationRequest>),
    /// Cancels the reservation with this number.
    CancelReservation(u64),
    /// A worker reads whether the ranks of interactive jobs there work.
    ReadActivity {
        /// Its node.
        node: usize,
        /// Whether they have worked since it was read last.
        works: bool,
    },
    /// Drains a node: it gets no new jobs.
    Drain(usize),
    /// Resumes a drained node.
    Resume(usize),
    /// Crashes the head and restarts it.
    CrashHead {
        /// The head handles this many more events. Some effects of the first are carried out, none of the
        /// others.
        effects_lost: u32,
        /// How long the head is down.
        down_for: Span,
    },
    /// Crashes a worker daemon and restarts it; its executors go on.
    CrashWorker {
        /// The node.
        node: usize,
        /// How long the daemon is down.
        down_for: Span,
    },
    /// Kills the worker daemon of a node together with all executors, as a name kills them all. The watchdogs
    /// of the executors have another name.
    KillByName {
        /// The node.
        node: usize,
        /// How long the daemon is down.
        down_for: Span,
    },
    /// Suspends a worker daemon.
    SuspendWorker {
        /// The node.
        node: usize,
        /// For how long.
        length: Span,
    },
    /// Suspends one executor. The processes of its rank go on.
    SuspendExecutor {
        /// The node.
        node: usize,
        /// Which of the executors, modulo their number.
        number: usize,
        /// For how long.
        length: Span,
    },
    /// Pauses a machine with everything on it, as a virtual machine is paused.
    PauseMachine {
        /// The node.
        node: usize,
        /// For how long.
        length: Span,
    },
    /// Switches a machine off with everything on it.
    CrashMachine {
        /// The node.
        node: usize,
        /// How long it is off; `None`: until it is replaced in the quiet phase.
        down_for: Option<Span>,
        /// What its disk keeps.
        disk: Disk,
    },
    /// Breaks the link of a worker; no new one can be opened for a while.
    Cut {
        /// The node.
        node: usize,
        /// How long no link can be opened.
        length: Span,
        /// After how long the head notices.
        head_notices: Span,
        /// After how long the worker notices.
        worker_notices: Span,
    },
    /// Makes a worker close its link and dial again several times without waiting for an answer, so that its
    /// hellos arrive in any order.
    Redial {
        /// The node.
        node: usize,
        /// How many times.
        times: u32,
        /// The largest additional delay of what is sent on such a link.
        lag: Span,
    },
    /// Makes the journal of the head slow for a while.
    SlowJournal {
        /// For how long.
        length: Span,
        /// How long each batch takes.
        commit: Span,
    },
    /// Fills the disk of the journal for a while.
    FillJournal {
        /// For how long.
        length: Span,
    },
    /// Stalls the policy for a while: it sees no changes and gives no plans.
    StallPolicy {
        /// For how long.
        length: Span,
    },
    /// Makes the disk of a machine slow for a while: outcomes of ranks are reported later.
    SlowDisk {
        /// The node.
        node: usize,
        /// For how long.
        length: Span,
        /// How long it takes to write an outcome.
        write: Span,
    },
    /// Fills the disk of a machine for a while: no rank can start there.
    FillDisk {
        /// The node.
        node: usize,
        /// For how long.
        length: Span,
    },
    /// Takes the program of a worker away for a while, or its permission to execute it: no executor can be
    /// started.
    BreakProgram {
        /// The node.
        node: usize,
        /// For how long.
        length: Span,
    },
    /// Sets the clock of the head's machine.
    StepHeadClock(ClockStep),
    /// Sets the clock of a machine; its processes use it from the next start of the machine on.
    StepClock {
        /// The node.
        node: usize,
        /// The change.
        step: ClockStep,
    },
    /// Kills one executor. Where no worker daemon acts, its watchdog ends the rank.
    KillExecutor {
        /// The node.
        node: usize,
        /// Which of the executors with a running rank, modulo their number.
        number: usize,
    },
    /// Breaks an MPS server, and with it its clients.
    BreakMps {
        /// The node; the next one, cyclically, if no server is active there.
        node: usize,
        /// Which of the active servers, modulo their number. It selects the culprit among the clients in the
        /// same way.
        number: usize,
        /// Whom the log of the server names.
        attribution: FaultAttribution,
    },
    /// Makes a GPU stop responding until the worker daemon is restarted.
    LoseGpu {
        /// The node.
        node: usize,
        /// Which GPU, modulo their number.
        number: usize,
    },
    /// Makes the driver report a critical error.
    Xid {
        /// The node.
        node: usize,
        /// Which GPU, modulo their number.
        number: usize,
        /// The Xid code.
        code: u64,
    },
    /// Makes the worker daemon sample its GPUs.
    Look {
        /// The node.
        node: usize,
        /// Memory that processes outside the cluster hold on each GPU.
        foreign_memory: Bytes,
        /// How much memory the ranks are observed to hold.
        observed: ObservedMemory,
    },
}

impl Scenario {
    /// A cluster of these machines without faults and without jobs.
    #[must_use]
    pub fn calm(shapes: Vec<MachineSpec>) -> Scenario {
        Scenario {
            shapes,
            hardware: Hardware::default(),
            // Records are read at the end.
            config: Config { archive_after: Span::from_secs(365 * 86_400), ..Config::default() },
            policy: "fifo".into(),
            knowledge: InterferenceContext::default(),
            sensitivity: Arc::default(),
            random_agents: None,
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
            external_events: Vec::new(),
            quiet_at: Time::EPOCH,
            end_timeout: Span::from_secs(10 * 86_400),
            check_level: CheckLevel::Everything,
        }
    }

    /// Adds a job that is submitted at this time.
    #[must_use]
    pub fn submit(mut self, at: Time, spec: JobSpec) -> Scenario {
        self.external_events.push((at, ExternalEvent::Submit(self.submissions.len())));
        self.submissions.push(ScenarioSubmission {
            spec,
            user: "ada".into(),
            after: Vec::new(),
            parent: None,
        });
        self
    }

    /// Adds an external event.
    #[must_use]
    pub fn inject(mut self, at: Time, event: ExternalEvent) -> Scenario {
        self.external_events.push((at, event));
        self
    }

    /// Sets the beginning of the quiet phase.
    #[must_use]
    pub fn quiet(self, quiet_at: Time) -> Scenario {
        Scenario { quiet_at, ..self }
    }
}

impl ExternalEvent {
    /// The node that a fault strikes, or the first one where it strikes the head; `None` if it is no fault.
    pub(crate) const fn struck_node(&self) -> Option<usize> {
        match self {
            ExternalEvent::CrashWorker { node, .. }
            | ExternalEvent::KillByName { node, .. }
            | ExternalEvent::SuspendWorker { node, .. }
            | ExternalEvent::SuspendExecutor { node, .. }
            | ExternalEvent::PauseMachine { node, .. }
            | ExternalEvent::CrashMachine { node, .. }
            | ExternalEvent::Cut { node, .. }
            | ExternalEvent::Redial { node, .. }
            | ExternalEvent::SlowDisk { node, .. }
            | ExternalEvent::FillDisk { node, .. }
            | ExternalEvent::BreakProgram { node, .. }
            | ExternalEvent::StepClock { node, .. }
            | ExternalEvent::KillExecutor { node, .. }
            | ExternalEvent::BreakMps { node, .. }
            | ExternalEvent::LoseGpu { node, .. }
            | ExternalEvent::Xid { node, .. }
            | ExternalEvent::Look { node, .. } => Some(*node),
            ExternalEvent::CrashHead { .. }
            | ExternalEvent::SlowJournal { .. }
            | ExternalEvent::FillJournal { .. }
            | ExternalEvent::StallPolicy { .. }
            | ExternalEvent::StepHeadClock(_) => Some(0),
            ExternalEvent::Submit(_)
            | ExternalEvent::Change { .. }
            | ExternalEvent::Hostile(_)
            | ExternalEvent::Impostor(_)
            | ExternalEvent::Drain(_)
            | ExternalEvent::ReadActivity { .. }
            | ExternalEvent::ApplyShares(_)
            | ExternalEvent::Reserve(_)
            | ExternalEvent::CancelReservation(_)
            | ExternalEvent::Resume(_) => None,
        }
    }

    /// The node whose machine has to run for this to happen: nothing dies, acts or is suspended on a paused
    /// one.
    pub(crate) const fn on_running_machine(&self) -> Option<usize> {
        let is_elsewhere = matches!(
            self,
            ExternalEvent::CrashMachine { .. }
                | ExternalEvent::Cut { .. }
                | ExternalEvent::CrashHead { .. }
                | ExternalEvent::SlowJournal { .. }
                | ExternalEvent::FillJournal { .. }
                | ExternalEvent::StallPolicy { .. }
                | ExternalEvent::StepHeadClock(_)
        );
        if is_elsewhere { None } else { self.struck_node() }
    }
}
