//! What processes hold and pass on.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{ActorId, ObjectId};

/// What a handle stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HeldId {
    /// An actor, which can be called.
    Actor(ActorId),
    /// An object, or one that a call is to make.
    Object(ObjectId),
}

impl HeldId {
    /// The object, if it is one.
    #[must_use]
    pub const fn object(self) -> Option<ObjectId> {
        match self {
            HeldId::Object(object) => Some(object),
            HeldId::Actor(_) => None,
        }
    }
}

impl fmt::Display for HeldId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeldId::Actor(actor) => write!(f, "actor {actor}"),
            HeldId::Object(object) => write!(f, "object {object}"),
        }
    }
}
