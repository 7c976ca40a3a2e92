//! What can happen in a simulated cluster.
//!
//! Whatever belongs to a daemon carries the number of the daemon's life: after a crash it is void.

use cohabit_policy::Plan;
use cohabit_types::{
    By, ClientKey, DeviceId, Inventory, Order, RankId, Reply, Report, Request, Span, Ticket, WorkerKey,
};
use cohabit_worker_core::MpsOrder;

use crate::alarm::Setting;
use crate::link::Side;
use crate::machine::{Luck, Pulse};
use crate::scenario::Act;

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
pub(crate) enum Happening {
    /// Something from outside.
    Act(Act),
    /// At the head, in the given one of its lives.
    Head(u64, AtHead),
    /// At a node's worker daemon, in the given one of its lives.
    Daemon(usize, u64, AtDaemon),
    /// To a rank on this node.
    Machine(usize, Pulse),
    /// A machine that was down is up again.
    PowerOn(usize),
    /// The head that was down is up again.
    HeadBack,
    /// A worker daemon that was down is up again, unless its machine has met another fate since.
    DaemonBack(usize, u64),
    /// Something comes to an end of a link.
    Arrival(LinkId, Message),
    /// An end of a link notices that the link is broken.
    Broken(LinkId, Side),
    /// A request comes to the head.
    Request(ClientKey, By, Request),
    /// A reply comes to its client.
    Reply(ClientKey, Reply),
    /// A client that has no reply to this submission yet asks again.
    Impatience(usize),
    /// From here on nothing bad happens.
    Quiet,
    /// Somebody looks whether everything has ended, and releases what is held.
    Tidy,
}

/// What happens at the head.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AtHead {
    Alarm(Setting),
    /// A batch of its journal was written, or could not be.
    Written,
    Planned(Ticket, Plan),
    /// The policy did not answer in time.
    OutOfTime(Ticket),
    /// A report that a planted bug makes up.
    Relabelled(WorkerKey, Report),
    /// A link that it closed itself is gone.
    Closed(WorkerKey),
}

/// What happens at a worker daemon.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AtDaemon {
    Alarm(Setting),
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
    Mps(DeviceId, MpsOrder, Luck),
    /// The outcome of a rank is deleted.
    Forget(RankId),
}

/// What travels on links.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// To the head: the greeting.
    Hello(Box<Inventory>),
    /// To the head.
    Report(Report),
    /// To the worker: the answer to its greeting.
    Welcome,
    /// To the worker.
    Order(Order),
}

impl Message {
    /// Where it travels to.
    pub(crate) const fn to(&self) -> Side {
        match self {
            Message::Hello(_) | Message::Report(_) => Side::Head,
            Message::Welcome | Message::Order(_) => Side::Worker,
        }
    }
}
