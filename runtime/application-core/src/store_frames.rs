//! What a process and the store of its node send each other, over a connection of their own.
//!
//! Descriptors go with frames: `Allocated` has the memory to fill, `HandOver` the sealed memory.

use serde::{Deserialize, Serialize};

use crate::errors::CallError;
use crate::ids::ObjectId;

/// From a process to the store of its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreRequest {
    /// Memory for an object of its own; answered by `Allocated` or `Refused`.
    Reserve {
        /// The object.
        object: ObjectId,
        /// Its exact size.
        bytes: u64,
    },
    /// Memory for an object that another process named, and that is lost; answered by `Allocated` or
    /// `Refused`, or by `Stored` if the node has it already.
    Remake {
        /// The object.
        object: ObjectId,
        /// Its exact size.
        bytes: u64,
    },
    /// The memory is filled and sealed; answered by `Stored`.
    Filled {
        /// The object.
        object: ObjectId,
    },
    /// The process gives up an object that it makes. It gets no answer any more.
    Abandon {
        /// The object.
        object: ObjectId,
    },
    /// The memory of an object; answered by `HandOver` or `Refused`, and before that by `Fetching` if the
    /// object has to come from another node.
    Want {
        /// The object.
        object: ObjectId,
    },
    /// What was handed over once is mapped no longer.
    Unmapped {
        /// The object.
        object: ObjectId,
    },
}

/// From the store of a node to a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreReply {
    /// Memory of the size that was asked for.
    Allocated {
        /// The object.
        object: ObjectId,
    },
    /// The store has checked the object: others can read it.
    Stored {
        /// The object.
        object: ObjectId,
    },
    /// The sealed memory of an object. It counts as mapped until `Unmapped`.
    HandOver {
        /// The object.
        object: ObjectId,
        /// Its size.
        bytes: u64,
    },
    /// The object is not on this node. Whoever wants it waits for another node.
    Fetching {
        /// The object.
        object: ObjectId,
    },
    /// The request has failed.
    Refused {
        /// The object.
        object: ObjectId,
        /// Why.
        error: CallError,
    },
}

impl StoreReply {
    /// Whether a descriptor goes with it.
    #[must_use]
    pub const fn has_descriptor(&self) -> bool {
        match self {
            StoreReply::Allocated { .. } | StoreReply::HandOver { .. } => true,
            StoreReply::Stored { .. } | StoreReply::Fetching { .. } | StoreReply::Refused { .. } => false,
        }
    }
}
