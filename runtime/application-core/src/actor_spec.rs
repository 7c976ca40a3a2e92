//! What an actor is made of and which state its callers see.

use bytes::Bytes;
use cohabit_types::{AttemptId, Share};
use serde::{Deserialize, Serialize};

use crate::errors::{ActorEnd, CreateError};
use crate::ids::{IncarnationNumber, ObjectId};
use crate::limits::{MAX_ARGUMENTS, MAX_NAME};

/// An actor to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorSpec {
    /// Index of its type in the registry of the binary.
    pub kind: u32,
    /// Its name, unique among live actors.
    pub name: Option<String>,
    /// Whether it outlives its handles.
    pub lifetime: Lifetime,
    /// How often its process may be started again.
    pub restarts: u32,
    /// Most `&self` calls at the same time, at least 1.
    pub concurrency: u32,
    /// The GPUs that it claims, in thousandths.
    pub gpus: Share,
    /// Everything else that its job claims, encoded by the shell; the cores pass it through.
    pub claims: Bytes,
    /// Encoded arguments of the constructor.
    pub arguments: Bytes,
    /// References in the arguments whose values the constructor gets.
    pub needs: Vec<ObjectId>,
}

/// When an actor ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lifetime {
    /// As soon as nobody holds a handle.
    Held,
    /// Never: it has to be stopped.
    Detached,
}

/// The state of an actor as its callers see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActorState {
    /// It waits for resources: for which.
    Pending {
        /// Why, as the head or the coordinator says.
        why: String,
    },
    /// Its process starts, or its constructor runs.
    Starting,
    /// It takes calls.
    Ready {
        /// The process that takes them.
        member: AttemptId,
        /// Its incarnation.
        incarnation: IncarnationNumber,
    },
    /// Its process ended and is started again.
    Restarting,
    /// It has ended for good.
    Ended(ActorEnd),
}

impl ActorSpec {
    /// Checks everything that does not depend on other actors.
    ///
    /// # Errors
    ///
    /// If the name has a wrong length, the arguments are too large, or a detached actor has no name.
    pub fn check(&self) -> Result<(), CreateError> {
        let bytes = self.name.as_ref().map_or(1, String::len);
        if bytes == 0 || bytes > MAX_NAME {
            return Err(CreateError::NameLength { bytes });
        }
        if self.lifetime == Lifetime::Detached && self.name.is_none() {
            return Err(CreateError::DetachedWithoutName);
        }
        let bytes = self.arguments.len();
        if bytes > MAX_ARGUMENTS { Err(CreateError::ArgumentsTooLarge { bytes }) } else { Ok(()) }
    }
}
