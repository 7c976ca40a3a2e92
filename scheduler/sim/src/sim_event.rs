//! What can happen in a simulated cluster.
//!
//! Whatever belongs to a daemon carries the number of the daemon's life: after a crash it is void.

use cohabit_policy::Plan;
use cohabit_types::{
    ClientRequestId, DeviceId, Inventory, Order, PlanRequestId, Principal, RankId, Reply, Report, Request,
    Span, WorkerKey,
};
use cohabit_worker_core::MpsOrder;

use crate::alarm::AlarmToken;
use crate::link::Side;
use crate::machine::{FaultChance, RankTimer};
use crate::scenario::ExternalEvent;

/// A link between a worker and the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LinkId(pub(crate) u64);

impl LinkId {
    /// Its place in the list of all links.
    pub(crate) const fn place(self) -> usize {
        self.0 as usize
    }
}

/// Something that happens at a certain time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SimEvent {
    /// Something from outside.
    ExternalEvent(ExternalEvent),
    /// At the head, in the given one of its lives.
    Head(u64, HeadSimEvent),
    /// At a node's worker daemon, in the given one of its lives.
    Daemon(usize, u64, DaemonSimEvent),
    /// To a rank on this node.
    Machine(usize, RankTimer),
    /// A machine that was down is up again.
    PowerOn(usize),
    /// The head that was down is up again.
    HeadBack,
    /// A worker daemon that was down is up again, unless its machine has met another fate since.
    DaemonBack(usize, u64),
    /// Something comes to an end of a link.
    Arrival(LinkId, SimMessage),
    /// An end of a link notices that the link is broken.
    Broken(LinkId, Side),
    /// A request comes to the head.
    Request(ClientRequestId, Principal, Request),
    /// A reply comes to its client.
    Reply(ClientRequestId, Reply),
    /// A client that has no reply to this submission yet asks again.
    RetrySubmission(usize),
    /// From here on nothing bad happens.
    Quiet,
    /// Somebody looks whether everything has ended, and releases what is held.
    CleanUp,
}

/// What happens at the head.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HeadSimEvent {
    Alarm(AlarmToken),
    /// A batch of its journal was written, or could not be.
    Written,
    Planned(PlanRequestId, Plan),
    /// The policy did not answer in time.
    OutOfTime(PlanRequestId),
    /// A report that a planted bug makes up.
    Relabelled(WorkerKey, Report),
    /// A link that it closed itself is gone.
    Closed(WorkerKey),
}

/// What happens at a worker daemon.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DaemonSimEvent {
    Alarm(AlarmToken),
    /// It tries to reach the head.
    Dial,
    /// It has waited for long enough to be welcomed on this link.
    GiveUp(LinkId),
    /// It hangs up and dials again, so many times, and its words travel so much longer.
    Redial {
        times: u32,
        lag: Span,
    },
    /// The actor of a GPU's MPS daemon has done, or tried, what it was told.
    Mps(DeviceId, MpsOrder, FaultChance),
    /// The outcome of a rank is deleted.
    Forget(RankId),
}

/// What travels on links.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SimMessage {
    /// To the head: the greeting.
    Hello(Box<Inventory>),
    /// To the head.
    Report(Report),
    /// To the worker: the answer to its greeting.
    HelloAccepted,
    /// To the worker.
    Order(Order),
}

impl SimMessage {
    /// Where it travels to.
    pub(crate) const fn to(&self) -> Side {
        match self {
            SimMessage::Hello(_) | SimMessage::Report(_) => Side::Head,
            SimMessage::HelloAccepted | SimMessage::Order(_) => Side::Worker,
        }
    }
}
