//! What processes and the coordinator tell each other about objects.

use cohabit_types::RankId;
use serde::{Deserialize, Serialize};

use crate::errors::CallError;
use crate::ids::{ObjectId, RequestNumber};
use crate::lineage::Lineage;
use crate::object_value::{Carried, SharedValue, StoredObject};

/// From a member to the coordinator, which keeps the directory of the objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToDirectory {
    /// The member holds a reference that the coordinator is to pass on: this is a lend of it to the member.
    Share {
        /// The reference.
        object: ObjectId,
        /// Its value, if it is known; else `Resolve` follows.
        value: Option<SharedValue>,
    },
    /// The call of a reference that was shared has ended.
    Resolve {
        /// The reference.
        object: ObjectId,
        /// Its value.
        value: SharedValue,
    },
    /// Send the value of a reference once it is known.
    Watch {
        /// The reference.
        object: ObjectId,
        /// From whom it came: if nothing is known of it when that process has ended, it is lost.
        lender: RankId,
    },
    /// The member has put an object into the store of its node: this is a lend of it to the member.
    Stored {
        /// The object.
        stored: StoredObject,
        /// The handles in it, once for each; nothing is lent, the coordinator takes its own.
        carries: Vec<Carried>,
    },
    /// Lend the handles in a stored object; answered by `Opened`.
    Open {
        /// The number of the question.
        request: RequestNumber,
        /// The object.
        object: ObjectId,
    },
    /// A task of the member has ended, whose value is in the store of a further node: how to make that again.
    Made {
        /// The object.
        object: ObjectId,
        /// The task; nothing is lent, the coordinator takes its own.
        lineage: Box<Lineage>,
    },
    /// The task of `Remake` has ended, and its runner has said that the object is stored, or will say so.
    Remade {
        /// The object.
        object: ObjectId,
        /// The number in `Remake`.
        remake: u32,
        /// The runner.
        runner: RankId,
    },
    /// An object could not be made again as `Remake` asked for.
    NotRemade {
        /// The object.
        object: ObjectId,
        /// The number in `Remake`.
        remake: u32,
        /// Why.
        error: CallError,
    },
    /// The answer to `Inquire`: what the member had to say of the object was said before.
    Said {
        /// The object.
        object: ObjectId,
    },
}

/// From the coordinator to a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FromDirectory {
    /// The value of a reference that the member watches; what is in it is lent to the member.
    Known {
        /// The reference.
        object: ObjectId,
        /// Its value.
        value: SharedValue,
    },
    /// Nobody holds a reference that the member has shared: its call may be cancelled.
    Unwanted {
        /// The reference.
        object: ObjectId,
    },
    /// The answer to `Open`.
    Opened {
        /// The number of the question.
        request: RequestNumber,
        /// The handles in the object, once for each, which are lent to the member.
        carries: Vec<Carried>,
    },
    /// No node has an object any more that the member holds: run its task again. Answered by `Remade` or
    /// `NotRemade`; the runner of the task says `Stored`.
    Remake {
        /// The object.
        object: ObjectId,
        /// The number of the remake.
        remake: u32,
        /// The task; the handles in its arguments are lent to the member.
        lineage: Box<Lineage>,
    },
    /// Say `Said` when everything was said of an object that this member named.
    Inquire {
        /// The object.
        object: ObjectId,
    },
}
