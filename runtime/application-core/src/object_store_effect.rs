//! What the store of a node knows objects by, and what its shell does, in order.

use cohabit_types::RankId;
use serde::{Deserialize, Serialize};

use crate::errors::CallError;
use crate::ids::ObjectId;

/// Whether the bytes are also on another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectKind {
    /// They are not: spill them rather than lose them.
    Primary,
    /// They are: drop them, and get them again when they are needed.
    Copy,
}

/// Where bytes of an object lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectPlace {
    /// In shared memory.
    Memory,
    /// In a spill file.
    Disk,
}

/// How a transfer between memory and disk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferResult {
    /// The bytes are at both places.
    Done,
    /// They are where they were, and nothing is left at the other place.
    Failed,
}

/// Why a maker gets no memory, or a reader no object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StoreRefusal {
    /// It would never fit.
    #[error("the object has {bytes} bytes, and all objects of a node may have {budget}")]
    TooLarge {
        /// The size of the object.
        bytes: u64,
        /// The memory for all objects.
        budget: u64,
    },
    /// The store takes no more objects.
    #[error("the node has {limit} objects, the most that it takes")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// It waited for room too long.
    #[error("there was no room for the object for too long")]
    Full,
    /// Somebody else makes or has made it.
    #[error("the object is there already")]
    Exists,
    /// It was never here, or is no longer.
    #[error("the object is not on this node")]
    Unknown,
    /// Nobody holds it any more.
    #[error("nobody holds the object any more")]
    Freed,
    /// The disk does not give it back.
    #[error("the object cannot be read back from disk")]
    Unreadable,
}

/// What the shell of a store does, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectStoreEffect {
    /// Allocate memory and give it to the maker, which fills it: `filled`. If there is none: `not_allocated`.
    Allocate {
        /// The object.
        object: ObjectId,
        /// Its size.
        bytes: u64,
        /// Who fills it.
        maker: RankId,
    },
    /// Give the sealed memory to a reader. It counts as mapped by it from now on, until `unmapped`.
    HandOver {
        /// The object.
        object: ObjectId,
        /// The reader.
        to: RankId,
    },
    /// Copy the object to disk, keep its memory, and say `spilled`.
    Spill {
        /// The object.
        object: ObjectId,
    },
    /// Copy the object into new memory, keep it on disk, and say `brought_back`.
    BringBack {
        /// The object.
        object: ObjectId,
    },
    /// Close what lies at this place.
    Drop {
        /// The object.
        object: ObjectId,
        /// The place.
        place: ObjectPlace,
    },
    /// Tell a maker that it gets no memory, or a reader that it gets no object.
    Refuse {
        /// The object.
        object: ObjectId,
        /// Who asked.
        to: RankId,
        /// Why.
        reason: StoreRefusal,
    },
    /// Tell a reader that it waits for another node.
    AwaitFetch {
        /// The object.
        object: ObjectId,
        /// The reader.
        to: RankId,
    },
    /// Ask the coordinator for an object that is not here: it answers by `fetch` or `lost`.
    Ask {
        /// The object.
        object: ObjectId,
    },
    /// Allocate memory and fetch the object into it. When that is over, tell the coordinator, and say
    /// `fetched`. If there is no memory: `not_allocated`.
    Fetch {
        /// The object.
        object: ObjectId,
        /// Its size.
        bytes: u64,
    },
    /// Tell the coordinator that an object was fetched, which it did not have to be: it is here, or nobody
    /// waits for it any more. In that case `CopyDropped` follows.
    FetchSettled {
        /// The object.
        object: ObjectId,
    },
    /// Tell the coordinator that a copy is not here any more.
    CopyDropped {
        /// The object.
        object: ObjectId,
    },
    /// Tell a reader that no node has the object.
    Lose {
        /// The object.
        object: ObjectId,
        /// The reader.
        to: RankId,
        /// What the coordinator says.
        error: CallError,
    },
}
