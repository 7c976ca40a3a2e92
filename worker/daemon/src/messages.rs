//! Messages to the driver from the other actors.

use cohabit_actor::ReplyTo;
use cohabit_net::WorkerReports;
use cohabit_types::{AttemptId, Device, HeldRank, Incarnation, Order, Report, StartFailure, Time};
use cohabit_worker_core::{FetchedCheckpoints, WorkerEvent};
use tokio::sync::mpsc;

/// Messages to the driver actor.
pub(crate) enum DriverMessage {
    /// An event for the core.
    Worker(WorkerEvent),
    /// The link is about to say hello to the head and needs the inventory. Orders of earlier links are
    /// ignored from now on.
    Inventory(ReplyTo<InventorySnapshot>),
    /// The head has accepted this link; reports go into this channel.
    Linked(LinkBegin),
    /// Over this link the head could be reached at this time.
    Reached(Incarnation, Time),
    /// Orders that arrived over this link.
    Ordered(Incarnation, Vec<Order>),
    /// This link has ended.
    Unlinked(Incarnation),
    /// The head answers, and cannot take part before an admin has recovered it.
    HeadRecovers,
    /// A copy of code was made, or could not be made.
    CodeFetched(AttemptId, Result<(), StartFailure>),
    /// What came of the checkpoints for an attempt.
    CheckpointsFetched(AttemptId, FetchedCheckpoints),
    /// The core's deadline has come.
    Alarm,
    /// It is time to see whether interactive jobs do anything.
    ReadActivity,
    /// It is time to renew the leases of the executors, if the head can be reached.
    Renew,
}

/// A link that the head has accepted.
pub(crate) struct LinkBegin {
    pub(crate) incarnation: Incarnation,
    /// Where its reports go.
    pub(crate) reports: mpsc::Sender<Report>,
    /// The head, for questions.
    pub(crate) head: WorkerReports,
    /// When the head was asked to accept it.
    pub(crate) at: Time,
}

/// The part of the inventory that the core knows.
pub(crate) struct InventorySnapshot {
    /// Every rank on this host.
    pub(crate) held_ranks: Vec<HeldRank>,
    /// The devices in their present condition.
    pub(crate) devices: Vec<Device>,
}
