//! Ids inside one application. Each is a number that its maker counts up from 1, and none is ever used again.
//!
//! A process of an application is named by its job, attempt and rank (`RankId`): a new attempt of its job
//! consists of other members.

use std::fmt;

use cohabit_types::RankId;
use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($type:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $type);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// An actor of the application; the coordinator counts them.
    ActorId(u64)
}
number! {
    /// A call, in the order in which one process made its calls.
    CallNumber(u64)
}
number! {
    /// A question of one process to the coordinator.
    RequestNumber(u64)
}
number! {
    /// A connection of one session, in the order in which it was dialed.
    LinkNumber(u64)
}
number! {
    /// A call in the process of its actor, in order of arrival.
    Ticket(u64)
}
number! {
    /// A runner of tasks; the coordinator counts them.
    TaskRunnerNumber(u64)
}
number! {
    /// How often an actor has been constructed: 1 for the first construction.
    IncarnationNumber(u32)
}

number! {
    /// A try to end the application; the coordinator counts them.
    ClosingNumber(u64)
}
number! {
    /// A node on which processes of the application run. The coordinator counts them; its own is the first.
    NodeNumber(u32)
}

impl ActorId {
    /// The actor of this rank in the gang that begins with this one.
    #[must_use]
    pub const fn of_rank(self, rank: u32) -> ActorId {
        ActorId(self.0 + rank as u64)
    }
}

impl NodeNumber {
    /// The node of the coordinator.
    pub const COORDINATOR: NodeNumber = NodeNumber(0);
}

/// An object, or one that a call is to make. Its maker counts its objects, so that no two processes ever make
/// the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId {
    /// The process that named it.
    pub maker: RankId,
    /// From 1.
    pub number: u64,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.maker, self.number)
    }
}
