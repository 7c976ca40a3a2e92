//! What goes into the worker's state machine and what comes out of it.
//!
//! Whoever drives it hands in events in the order in which they happened, carries out the effects in their
//! order, and sends [`WorkerEvent::Alarm`] at the deadline.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{
    Bytes, Device, DeviceId, Enforcement, GpuReading, JobSpec, Order, Outcome, Progress, RankId, Report,
    Role, Share, Signal, Span, StartFailure, StopReason, Time,
};

use crate::Stopping;

/// What can happen to a worker.
///
/// Orders come from the present link only: once [`crate::Worker::held`] was taken for the next greeting, an
/// order of an earlier link must not come any more, for the head counts on what it was told.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerEvent {
    /// The head ordered something.
    Order(Order),
    /// The rank's process runs.
    Spawned(RankId),
    /// The rank's process could not be started; nothing of it is left.
    SpawnFailed(RankId, StartFailure),
    /// The rank ended, and nothing of it is left.
    Exited(RankId, RankExit),
    /// The rank reported progress.
    Progress(RankId, Progress),
    /// An executor of an earlier worker daemon was found, or what one left behind. Comes only before the
    /// first `held`.
    Found(Box<FoundRank>),
    /// The head welcomed this worker: it knows what `Worker::held` told it.
    Linked,
    /// The link broke.
    Unlinked,
    /// The actor of a device's MPS daemon answers an order, or has seen something.
    Mps(DeviceId, MpsEvent),
    /// It is known, or known anew, whether the limits of a rank that shares its device are enforced.
    Sharing(RankId, Enforcement),
    /// The rank's user has no account here: it runs as this user, which nobody else is.
    PrivateUser(RankId, u32),
    /// All GPUs were looked at.
    Sampled(Vec<GpuSample>),
    /// The driver reported a critical error of a GPU, by its Xid number.
    Xid(DeviceId, u64),
    /// The deadline came.
    Alarm,
}

/// What the actor of a device's MPS daemon says. Each order is answered, in bounded time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MpsEvent {
    /// The daemon and its server run, and a probe has proved it: clients may come. Answers
    /// [`MpsOrder::Start`], [`MpsOrder::Adopt`] and [`MpsOrder::Recover`].
    Up,
    /// There is no daemon that works: why. Answers the same.
    Failed(String),
    /// There is no daemon any more. Answers [`MpsOrder::Stop`].
    Stopped,
    /// The server is in fault, or gone: all its clients have lost. Comes before the end of any rank that was
    /// its client, and once for each fault.
    Faulted {
        /// Whose fault it was, where the server's log tells.
        culprit: Option<RankId>,
        /// What was seen.
        detail: String,
    },
}

/// What the actor of a device's MPS daemon is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpsOrder {
    /// Start a daemon, and prove by a probe that it works.
    Start,
    /// Take over the daemon that an earlier worker daemon started.
    Adopt,
    /// All clients are gone after a fault: wait until the server is back, or start the daemon anew.
    Recover,
    /// Stop the daemon.
    Stop,
}

/// What one look at a GPU showed.
#[derive(Debug, Clone, PartialEq)]
pub struct GpuSample {
    /// Which.
    pub device: DeviceId,
    /// What it showed; or that it does not answer any more, and why.
    pub reading: Result<GpuReading, String>,
    /// Memory of each rank on it, where the driver tells.
    pub ranks: Vec<(RankId, Bytes)>,
    /// Memory of processes that are of no rank, nor MPS servers of ours.
    pub foreign_memory: Bytes,
}

/// What a worker does.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkerEffect {
    /// Tell the head. Comes only while there is a link; what matters is told again with each new one.
    Report(Report),
    /// Start an executor with this rank.
    Spawn(Box<RankStart>),
    /// Tell the executor how far the stop of its rank is, ahead of the signals of that step. It keeps this
    /// for a worker daemon that comes later.
    Stopping(RankId, Stopping),
    /// Send a signal.
    Signal(RankId, Signal, SignalTarget),
    /// Tell the executor of a rank that runs whether the head can be reached: an executor left alone for
    /// `orphan-grace` stops its rank by itself, whether or not a worker daemon is alive then.
    Lease(RankId, Lease),
    /// Write down why a rank that has ended was stopped: its executor had not heard of it.
    Explain(RankId, StopReason),
    /// Tell the actor of a device's MPS daemon.
    Mps(DeviceId, MpsOrder),
    /// The end of the rank is acknowledged: its outcome file may go. Logs and checkpoints stay.
    Forget(RankId),
}

/// Who of a rank's processes receives a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalTarget {
    /// The rank's whole process group.
    Group,
    /// Every descendant of the executor, those with a session of their own included.
    Everything,
}

/// Whether the head can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lease {
    /// It can: the executor's clock stops.
    Held,
    /// It cannot, since now: the executor's clock runs.
    Orphaned,
}

/// Everything an executor needs to start a rank.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RankStart {
    /// Which rank.
    pub rank: RankId,
    /// The job as submitted.
    #[serde(with = "cohabit_types::shared")]
    pub spec: Arc<JobSpec>,
    /// Who submitted it.
    pub user: String,
    /// The account as which it runs, where this worker can choose.
    #[serde(default)]
    pub account: String,
    /// What its user may do in the cluster.
    #[serde(default = "least_role")]
    pub role: Role,
    /// As whom it runs, where its user has no account here; found out when it is started.
    #[serde(default)]
    pub private_uid: Option<u32>,
    /// Its devices.
    pub devices: Vec<DeviceId>,
    /// How much of each.
    pub share: Share,
    /// How it comes to them.
    #[serde(default)]
    pub access: GpuAccess,
    /// The port at which it will listen for the other ranks, if that is its part; free until it starts.
    #[serde(default)]
    pub rendezvous_port: Option<u16>,
    /// What the core adds to the environment: all but paths and devices.
    pub environment: BTreeMap<Cow<'static, str>, String>,
}

/// Of ranks that earlier versions have started, it matters no longer.
const fn least_role() -> Role {
    Role::User
}

/// How a rank comes to its GPUs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GpuAccess {
    /// It has none, or only pseudo-devices.
    #[default]
    None,
    /// It has them to itself, and must not meet MPS.
    Exclusive,
    /// It is a client of the MPS server of its one GPU.
    Mps(MpsLimits),
    /// It takes turns with others on its one GPU, and is watched: this much memory, all its processes
    /// together.
    TimeSliced(Bytes),
}

/// What an MPS server lets one process of a rank have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MpsLimits {
    /// Memory of each of its processes.
    pub memory: Bytes,
    /// The part of the multiprocessors in per cent, where it is capped.
    pub percentage: Option<u32>,
}

/// How and when a rank ended, as its executor writes it down.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RankExit {
    /// How.
    pub outcome: Outcome,
    /// Why it was stopped, if it was and its executor knew: by itself, which is [`StopReason::Orphaned`], or
    /// by [`WorkerEffect::Stopping`].
    pub stopped: Option<StopReason>,
    /// When.
    pub at: Time,
}

/// A rank whose executor, or whose outcome, an earlier worker daemon left behind.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundRank {
    /// What was started.
    pub start: RankStart,
    /// When it started to run.
    pub started_at: Time,
    /// How far its stop is, if one has begun and it still runs.
    pub stopping: Option<Stopping>,
    /// How it ended, if it did.
    pub ending: Option<RankExit>,
    /// The last that was heard of it.
    pub progress: Option<Progress>,
}

/// What the worker's operator may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How often progress is reported at most.
    pub heartbeat: Span,
    /// Devices that exist here; an order that names another is refused.
    pub devices: Vec<Device>,
}
