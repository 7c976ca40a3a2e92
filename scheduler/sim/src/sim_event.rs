//! The events of a simulated cluster.
//!
//! An event for a daemon carries the generation of the daemon; after a crash of the daemon it is ignored.

use cohabit_policy::Plan;
use cohabit_types::{
    AttemptId, ClientRequestId, DeviceId, HostShare, Inventory, Order, PlanRequestId, Principal, RankId,
    Reply, Report, Request, Span, WorkerKey,
};
use cohabit_worker_core::{MpsOrder, WorkerEvent};

use crate::alarm::AlarmToken;
use crate::link::Side;
use crate::machine::{FaultChance, RankTimer};
use crate::scenario::ExternalEvent;

/// A link between a worker and the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(pub(crate) u64);

impl LinkId {
    /// Its index in the list of all links.
    pub(crate) const fn place(self) -> usize {
        self.0 as usize
    }
}

/// An event that happens at a certain time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SimEvent {
    /// An external event.
    ExternalEvent(ExternalEvent),
    /// An event at the head of this generation.
    Head(u64, HeadSimEvent),
    /// An event at the worker daemon of a node, in this generation.
    Daemon(usize, u64, DaemonSimEvent),
    /// A timer of a rank on this node.
    Machine(usize, RankTimer),
    /// A machine is switched on again.
    PowerOn(usize),
    /// The head is restarted.
    HeadBack,
    /// A worker daemon is restarted, unless its node has changed otherwise since.
    DaemonBack(usize, u64),
    /// A message arrives at an end of a link.
    Arrival(LinkId, SimMessage),
    /// A message that had arrived at a worker while it was suspended.
    Read(LinkId, SimMessage),
    /// What happened on a machine to a daemon of this generation while it was suspended.
    Worker(usize, u64, WorkerEvent),
    /// A suspended daemon, or a paused machine, goes on, unless its suspension has ended before.
    Continue(usize, u64),
    /// A suspended executor goes on.
    ResumeExecutor(usize, RankId),
    /// A rank was sent SIGKILL a while ago by the daemon of this generation.
    KilledLongAgo(usize, u64, RankId),
    /// An end of a link notices that the link is broken.
    Broken(LinkId, Side),
    /// A request arrives at the head.
    Request(ClientRequestId, Principal, Request),
    /// A reply arrives at its client.
    Reply(ClientRequestId, Reply),
    /// A client without a reply to this submission repeats it.
    RetrySubmission(usize),
    /// The quiet phase begins.
    Quiet,
    /// The end of the run is checked, and everything that is held is released.
    CleanUp,
}

/// An event at the head.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HeadSimEvent {
    Alarm(AlarmToken),
    /// A batch of the journal was written, or could not be.
    Written,
    Planned(PlanRequestId, Plan),
    /// The policy did not answer in time.
    OutOfTime(PlanRequestId),
    /// A report that a planted bug makes up.
    Relabelled(WorkerKey, Report),
    /// A link that the head closed is gone.
    Closed(WorkerKey),
}

/// An event at a worker daemon.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DaemonSimEvent {
    Alarm(AlarmToken),
    /// The daemon dials the head.
    Dial,
    /// The hello on this link was not accepted in time.
    GiveUp(LinkId),
    /// The daemon closes its link and dials again, `times` times, with messages delayed by up to `lag`.
    Redial {
        times: u32,
        lag: Span,
    },
    /// The actor of a GPU's MPS server has carried out an order, or failed to.
    Mps(DeviceId, MpsOrder, FaultChance),
    /// The code of an attempt was fetched, or could not be.
    CodeFetched(AttemptId),
    /// The checkpoints for an attempt, on this node by this number, were fetched, or could not be.
    CheckpointsFetched(AttemptId, u32),
    /// What an attempt may use was changed, or stays, as the kernel allows.
    Allotted(AttemptId, HostShare),
    /// The outcome of a rank is deleted.
    Forget(RankId),
}

/// A message on a link.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SimMessage {
    /// To the head: the hello of a worker.
    Hello(Box<Inventory>),
    /// To the head.
    Report(Report),
    /// To the worker: the hello was accepted.
    HelloAccepted,
    /// To the worker.
    Order(Order),
}

impl SimMessage {
    /// The side to which it travels.
    pub(crate) const fn to(&self) -> Side {
        match self {
            SimMessage::Hello(_) | SimMessage::Report(_) => Side::Head,
            SimMessage::HelloAccepted | SimMessage::Order(_) => Side::Worker,
        }
    }
}
