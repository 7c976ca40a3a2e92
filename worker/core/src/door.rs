//! What goes into the worker's state machine and what comes out of it.
//!
//! Whoever drives it hands in events in the order in which they happened, carries out the effects in their
//! order, and sends [`Event::Alarm`] at the deadline.

use std::collections::BTreeMap;

use cohabit_proto::{
    DeviceId, JobSpec, Order, Outcome, Progress, RankId, Report, Share, Signal, Span, StartFailure,
    StopReason, Time,
};

/// What can happen to a worker.
///
/// Orders come from the present link only: once [`crate::Worker::held`] was taken for the next greeting, an
/// order of an earlier link must not come any more, for the head counts on what it was told.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The head ordered something.
    Order(Order),
    /// The rank's process runs.
    Spawned(RankId),
    /// The rank's process could not be started; nothing of it is left.
    SpawnFailed(RankId, StartFailure),
    /// The rank ended, and nothing of it is left.
    Exited(RankId, Ending),
    /// The rank reported progress.
    Progress(RankId, Progress),
    /// An executor of an earlier worker daemon was found, or what one left behind. Comes only before the
    /// first `held`.
    Found(Box<FoundRank>),
    /// The head welcomed this worker: it knows what `Worker::held` told it.
    Linked,
    /// The link broke.
    Unlinked,
    /// The deadline came.
    Alarm,
}

/// What a worker does.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Tell the head. Comes only while there is a link; what matters is told again with each new one.
    Report(Report),
    /// Start an executor with this rank.
    Spawn(Box<RankStart>),
    /// Send a signal.
    Signal(RankId, Signal, Target),
    /// Tell the executor of a rank that runs whether the head can be reached: an executor left alone for
    /// `orphan-grace` stops its rank by itself, whether or not a worker daemon is alive then.
    Lease(RankId, Lease),
    /// The end of the rank is acknowledged: its outcome file may go. Logs and checkpoints stay.
    Forget(RankId),
}

/// Who of a rank's processes receives a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
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
    pub spec: JobSpec,
    /// Who submitted it.
    pub user: String,
    /// Its devices.
    pub devices: Vec<DeviceId>,
    /// How much of each.
    pub share: Share,
    /// The port at which it will listen for the other ranks, if that is its part; free until it starts.
    #[serde(default)]
    pub rendezvous_port: Option<u16>,
    /// What the core adds to the environment: all but paths and devices.
    pub environment: BTreeMap<String, String>,
}

/// How and when a rank ended, as its executor writes it down.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Ending {
    /// How.
    pub outcome: Outcome,
    /// Why the executor stopped it, if it did so by itself: [`StopReason::Orphaned`]. The reasons of stops
    /// that the worker's core ordered are added by the core.
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
    /// How it ended, if it did.
    pub ending: Option<Ending>,
    /// The last that was heard of it.
    pub progress: Option<Progress>,
}

/// What the worker's operator may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How often progress is reported at most.
    pub heartbeat: Span,
    /// Devices that exist here; an order that names another is refused.
    pub devices: Vec<DeviceId>,
}
