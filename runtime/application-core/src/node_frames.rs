//! What the coordinator and the stores of nodes tell each other. The store of the coordinator's own node is
//! in its process, those of further nodes are members.

use cohabit_types::{RankId, Rendezvous};
use serde::{Deserialize, Serialize};

use crate::errors::CallError;
use crate::ids::{NodeNumber, ObjectId, RequestNumber};
use crate::store_figures::StoreFigures;

/// From the coordinator to the store of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToStore {
    /// Nobody holds an object any more. Its memory goes once no process maps it.
    Free {
        /// The object.
        object: ObjectId,
    },
    /// A copy may be the last one: it is not dropped for want of room any more, but goes to disk.
    Keep {
        /// The object.
        object: ObjectId,
    },
    /// A process of this node has ended: of the objects that it named, these alone are held.
    Forget {
        /// The process.
        maker: RankId,
        /// What somebody holds.
        keep: Vec<ObjectId>,
    },
    /// Fetch an object that this store wants from the store of another node; answered by `Fetched`.
    Fetch {
        /// The object.
        object: ObjectId,
        /// Its size.
        bytes: u64,
        /// The node that has it.
        from: NodeNumber,
    },
    /// No node has an object that this store wants, nor will: those that wait for it are told.
    Lost {
        /// The object.
        object: ObjectId,
        /// Why.
        error: CallError,
    },
    /// Say what the store has; answered by `Told`.
    Tell {
        /// The number of the question.
        request: RequestNumber,
    },
}

/// Why an object was not fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FetchFailure {
    /// The node from which it was to be fetched does not have it.
    Missing,
    /// Something else: what.
    Failed(String),
}

impl From<String> for FetchFailure {
    fn from(text: String) -> FetchFailure {
        FetchFailure::Failed(text)
    }
}

/// From the store of a node to the coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromStore {
    /// Processes of other nodes reach those of this node here. The first word of the store of a further node.
    Listens {
        /// Where.
        at: Rendezvous,
    },
    /// A process of this node wants an object that is not here; answered by `Fetch` or `Lost`, once for each
    /// `Wants`.
    Wants {
        /// The object.
        object: ObjectId,
    },
    /// An object was fetched, or not: said once for each `Fetch`. If not, the store still wants it, unless it
    /// was freed.
    Fetched {
        /// The object.
        object: ObjectId,
        /// Why not.
        result: Result<(), FetchFailure>,
    },
    /// A copy was dropped for want of room.
    Dropped {
        /// The object.
        object: ObjectId,
    },
    /// The answer to `Tell`.
    Told {
        /// The number of the question.
        request: RequestNumber,
        /// What the store has.
        figures: StoreFigures,
    },
}
