//! Values of calls and of objects, in processes and on their way between them.
//!
//! A small value travels with its references. A larger one lies in the store of a node, and its references
//! name it. What is not known yet, and small values with handles in them, the coordinator passes on.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::errors::CallError;
use crate::held::HeldId;
use crate::ids::{ActorId, NodeNumber, ObjectId};

/// An object in the store of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredObject {
    /// Its name in the store.
    pub object: ObjectId,
    /// Its size.
    pub bytes: u64,
    /// The node of the process that stored it first.
    pub home: NodeNumber,
    /// Whether there are handles in it, which a reader has to ask for.
    pub has_handles: bool,
}

/// The value of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallValue {
    /// The encoded value.
    Inline(Bytes),
    /// It is in the store of a node; the answer carries a reference to it.
    Stored(StoredObject),
}

/// What a reference stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectValue {
    /// The encoded value.
    Inline(Bytes),
    /// It is in the store of a node.
    Stored(StoredObject),
    /// There is none, and never will be.
    Failed(CallError),
}

/// A handle or a reference on its way to another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Carried {
    /// A handle of an actor, which is lent.
    Actor(ActorId),
    /// A reference.
    Object {
        /// The name that is in the encoded value.
        object: ObjectId,
        /// What the sender knows of it.
        value: CarriedValue,
    },
}

/// What the sender of a reference knows of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CarriedValue {
    /// The coordinator knows, or will know; the reference is lent.
    Shared,
    /// It lies in the store of a node; the object there is lent.
    Stored(StoredObject),
    /// This, without handles in it; nothing is lent.
    Inline(Bytes),
    /// It has none; nothing is lent.
    Failed(CallError),
}

/// The value of a reference that the coordinator passes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SharedValue {
    /// The encoded value, with the handles in it.
    Inline {
        /// The encoded value.
        value: Bytes,
        /// The handles, once for each.
        carries: Vec<Carried>,
    },
    /// It lies in the store of a node.
    Stored(StoredObject),
    /// It has none.
    Failed(CallError),
}

impl Carried {
    /// What is lent with it.
    pub(crate) const fn lent(&self) -> Option<HeldId> {
        match self {
            Carried::Actor(actor) => Some(HeldId::Actor(*actor)),
            Carried::Object { object, value: CarriedValue::Shared } => Some(HeldId::Object(*object)),
            Carried::Object { value: CarriedValue::Stored(stored), .. } => {
                Some(HeldId::Object(stored.object))
            }
            Carried::Object { value: CarriedValue::Inline(_) | CarriedValue::Failed(_), .. } => None,
        }
    }
}

impl SharedValue {
    /// What is lent to whoever gets it.
    pub(crate) fn lent(&self) -> Vec<HeldId> {
        match self {
            SharedValue::Inline { carries, .. } => carries.iter().filter_map(Carried::lent).collect(),
            SharedValue::Stored(stored) => vec![HeldId::Object(stored.object)],
            SharedValue::Failed(_) => Vec::new(),
        }
    }

    /// Its size, as far as the coordinator keeps it.
    pub(crate) fn inline_bytes(&self) -> usize {
        match self {
            SharedValue::Inline { value, .. } => value.len(),
            SharedValue::Stored(_) | SharedValue::Failed(_) => 0,
        }
    }
}
