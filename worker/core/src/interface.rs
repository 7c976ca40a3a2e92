//! The interface of the worker's state machine: events go in, effects come out.
//!
//! The caller passes events in the order in which they happened, carries out the effects in their order, and
//! sends [`WorkerEvent::Alarm`] at the deadline.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohabit_types::{
    ApplicationCredentials, ApplicationPlace, AttemptId, Bytes, CheckpointResult, CheckpointSource, Device,
    DeviceId, Enforcement, GpuReading, HostShare, JobSpec, Order, Outcome, Progress, RankId, Report, Role,
    Share, Signal, Span, StartFailure, StopReason, Time,
};

/// What can happen to a worker.
///
/// Orders come from the current link only: once [`crate::Worker::held`] was read for the next hello, no order
/// of an earlier link may follow, because the head relies on what the hello says.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerEvent {
    /// An order of the head.
    Order(Order),
    /// The copy of code that belongs to this attempt is there, or why it cannot be made. Answers
    /// [`WorkerEffect::FetchCode`], also after [`WorkerEffect::ReleaseCode`].
    CodeFetched(AttemptId, Result<(), StartFailure>),
    /// What came of the checkpoints for this attempt. Answers [`WorkerEffect::FetchCheckpoints`], unless
    /// nobody waits for it any more.
    CheckpointsFetched(AttemptId, FetchedCheckpoints),
    /// The rank's process has started.
    Spawned(RankId),
    /// The rank's process could not be started; nothing of it is left.
    SpawnFailed(RankId, StartFailure),
    /// The rank has ended; nothing of it is left.
    Exited(RankId, RankExit),
    /// The rank reported progress.
    Progress(RankId, Progress),
    /// A rank of an earlier worker daemon was recovered, running or ended. Comes only before the first
    /// `held`.
    Found(Box<FoundRank>),
    /// The head has accepted this worker, and knows the result of the last `held`.
    Linked,
    /// The link is broken.
    Unlinked,
    /// The MPS manager of a device answers an order or reports a fault.
    Mps(DeviceId, MpsEvent),
    /// Whether the limits of a rank that shares its device are enforced; sent when it is known or changes.
    Sharing(RankId, Enforcement),
    /// The rank's user has no account on this host: it runs with this user id of its own.
    PrivateUser(RankId, u32),
    /// A scan of all GPUs.
    Sampled(Vec<GpuSample>),
    /// The processor time that the processes of these ranks have taken since they started, for
    /// [`Worker::watched_for_activity`](crate::Worker::watched_for_activity).
    ProcessorTime(Vec<(RankId, Span)>),
    /// The driver reported a critical error of a GPU, by its Xid code.
    Xid(DeviceId, u64),
    /// What the ranks of this attempt may use together; `None` if they have ended. Answers
    /// [`WorkerEffect::Allot`].
    Allotted(AttemptId, Option<HostShare>),
    /// The deadline has come.
    Alarm,
}

/// What the MPS manager of a device reports. Each order is answered in bounded time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MpsEvent {
    /// The daemon and its server run, checked by a probe: clients may connect. Answers [`MpsOrder::Start`],
    /// [`MpsOrder::Adopt`] and [`MpsOrder::Recover`].
    Up,
    /// Why there is no working daemon. Answers the same orders.
    Failed(String),
    /// There is no daemon any more. Answers [`MpsOrder::Stop`].
    Stopped,
    /// The server is in fault or gone: all its clients have lost their work. Comes once for each fault, and
    /// before the end of any rank that was a client.
    Faulted {
        /// The rank that caused it, where the server's log tells.
        culprit: Option<RankId>,
        /// What was observed.
        detail: String,
    },
}

/// An order to the MPS manager of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MpsOrder {
    /// Start a daemon, and check by a probe that it works. It serves the ranks of this account alone, where
    /// the driver serves one user at a time; `None`: those of all.
    Start(Option<Arc<str>>),
    /// Adopt the daemon that an earlier worker daemon started for this account, or for all.
    Adopt(Option<Arc<str>>),
    /// All clients are gone after a fault: wait until the server is active again, or restart the daemon for
    /// this account, or for all.
    Recover(Option<Arc<str>>),
    /// Stop the daemon.
    Stop,
}

/// The result of one scan of a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuSample {
    /// The GPU.
    pub device: DeviceId,
    /// Its readings, or why it does not answer any more.
    pub reading: Result<GpuReading, String>,
    /// The memory of each rank on it, where the driver reports it.
    pub ranks: Vec<(RankId, Bytes)>,
    /// Memory of processes that belong neither to ranks nor to our MPS servers.
    pub foreign_memory: Bytes,
}

/// What a worker does.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerEffect {
    /// Tell the head. Comes only while there is a link; what matters is reported again over each new link.
    Report(Report),
    /// Fetch the code of this rank, whose job runs in a snapshot of it or is a part of an application, and
    /// make a copy for its [`RankStart::code_owner`].
    FetchCode(Box<RankStart>),
    /// Remove the copy of code of this attempt; if it is still being made, nobody waits for it. A later
    /// [`WorkerEffect::FetchCode`] makes it anew, after the removal.
    ReleaseCode(AttemptId),
    /// Fetch the checkpoints of the job of this rank from their [`RankStart::checkpoints`].
    FetchCheckpoints(Box<RankStart>),
    /// Nobody waits any more for the checkpoints of this attempt.
    AbandonCheckpoints(AttemptId),
    /// Start this rank through an executor.
    Spawn(Box<RankStart>),
    /// Tell the executor how far the stop of its rank has got, before the signals of that step. The executor
    /// keeps it for later worker daemons.
    Stopping(RankId, Stopping),
    /// Send a signal.
    Signal(RankId, Signal, SignalTarget),
    /// Kill every process of the rank, and its executor, which has not started or ended it in time. Comes
    /// again until the rank has ended. Its end is reported like any other.
    Kill(RankId),
    /// Tell the executor of a running rank whether the head can be reached. After `orphan-grace` without
    /// contact an executor stops its rank by itself, whether or not a worker daemon is alive.
    Lease(RankId, Lease),
    /// Store why a rank that has ended was stopped, which its executor did not know.
    Explain(RankId, StopReason),
    /// Give the MPS manager of a device this order.
    Mps(DeviceId, MpsOrder),
    /// The head has acknowledged the end of the rank. Logs and checkpoints stay.
    Forget(RankId),
    /// Change the cores and the host memory that the ranks of this attempt may use together.
    Allot(AttemptId, HostShare),
}

/// How far the stop of a rank has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopping {
    /// Why the rank is being stopped.
    pub why: StopReason,
    /// The next step.
    pub next: StopStep,
    /// When the next step is due.
    pub due_at: Time,
}

/// A step of a stop after the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopStep {
    /// SIGTERM.
    Terminate,
    /// SIGKILL, repeated until the rank has ended.
    Kill,
}

/// Which processes of a rank receive a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalTarget {
    /// The rank's process group.
    Group,
    /// Every descendant of the executor, including those in sessions of their own.
    Everything,
}

/// Whether the head can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// It can: the executor's orphan timer stops.
    Held,
    /// It cannot: the executor's orphan timer runs.
    Orphaned,
}

/// Everything an executor needs to start a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct RankStart {
    /// The rank.
    pub rank: RankId,
    /// The job as submitted.
    pub spec: Arc<JobSpec>,
    /// Who submitted it.
    pub user: String,
    /// The account that it runs as, where this worker runs as root.
    pub account: String,
    /// The role of its user in the cluster.
    pub role: Role,
    /// Its user id, if its user has no account on this host; determined when it is started.
    pub private_uid: Option<u32>,
    /// Its devices.
    pub devices: Vec<DeviceId>,
    /// Its share of each device.
    pub share: Share,
    /// How it accesses its GPUs.
    pub access: GpuAccess,
    /// The port on which it will listen for the other ranks, if that is its task; unused until it starts.
    pub rendezvous_port: Option<u16>,
    /// The variables of the core: all but paths and devices.
    pub environment: BTreeMap<Cow<'static, str>, String>,
    /// What the rank of an application finds on its standard input besides paths. It is not stored, so a
    /// rank that was found has none.
    pub application: Option<ApplicationCredentials>,
    /// Where the processes of its application run. Not stored either.
    pub place: Option<ApplicationPlace>,
    /// The number of this node in its attempt. Not stored either.
    pub node_rank: u32,
    /// Where the checkpoints of earlier attempts are, if that is another node. Not stored either.
    pub checkpoints: Option<CheckpointSource>,
    /// What its user is told on its standard error before it starts.
    pub note: Option<String>,
    /// After how long it is reported that it does nothing, if its job is interactive and may be stopped then.
    pub idle_after: Option<Span>,
}

/// What came of the checkpoints that were on another node.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct FetchedCheckpoints {
    /// Whether they are here; none if there were none.
    pub result: Option<CheckpointResult>,
    /// What the user of the job is told on its standard error, without a line feed.
    pub note: Option<String>,
}

impl RankStart {
    /// Whose copy of stored code it uses: its attempt's own, or that of its application, which all parts of
    /// the application on this host share.
    #[must_use]
    pub fn code_owner(&self) -> AttemptId {
        code_owner(&self.spec, self.rank.attempt)
    }

    /// The directory for checkpoints that its job names, if it names one.
    #[must_use]
    pub fn named_checkpoints(&self) -> Option<PathBuf> {
        self.spec.checkpoint.as_ref().map(|place| Path::new(&self.spec.workdir).join(place))
    }
}

/// The attempt to which the copy of stored code belongs that this attempt uses.
fn code_owner(spec: &JobSpec, attempt: AttemptId) -> AttemptId {
    spec.entrypoint.application_of(attempt).unwrap_or(attempt)
}

/// How a rank accesses its GPUs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum GpuAccess {
    /// It has no GPU, or only host slots or simulated GPUs.
    #[default]
    None,
    /// It has them to itself, and must not use MPS.
    Exclusive,
    /// It is a client of the MPS server of its one GPU.
    Mps(MpsLimits),
    /// It shares its one GPU by time-slicing. A watchdog limits the memory of all its processes together to
    /// this.
    TimeSliced(Bytes),
}

/// The limits that an MPS server enforces for one process of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpsLimits {
    /// Memory of each of its processes.
    pub memory: Bytes,
    /// The percentage of the multiprocessors, where it is capped.
    pub percentage: Option<u32>,
}

/// How and when a rank ended, as its executor reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct RankExit {
    /// How.
    pub outcome: Outcome,
    /// Why it was stopped, if it was and its executor knew: from [`WorkerEffect::Stopping`], or by itself,
    /// which is [`StopReason::Orphaned`].
    pub stopped: Option<StopReason>,
    /// When.
    pub at: Time,
}

/// A rank that an earlier worker daemon left, running or ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundRank {
    /// What was started.
    pub start: RankStart,
    /// When its process started.
    pub started_at: Time,
    /// How far its stop has got, if it runs and is being stopped.
    pub stopping: Option<Stopping>,
    /// How it ended, if it did.
    pub ending: Option<RankExit>,
    /// Its last progress.
    pub progress: Option<Progress>,
}

/// The configuration of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How often progress is reported at most.
    pub heartbeat: Span,
    /// The devices of this host; an order that names another is refused.
    pub devices: Vec<Device>,
}
