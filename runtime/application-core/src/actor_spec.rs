//! What actors are made of and which state their callers see.

use std::collections::BTreeSet;

use bytes::Bytes;
use cohabit_types::{RankId, Share};
use serde::{Deserialize, Serialize};

use crate::errors::{ActorEnd, CreateError};
use crate::ids::{IncarnationNumber, ObjectId};
use crate::limits::{MAX_ACTORS, MAX_ARGUMENTS, MAX_NAME};

/// Actors to be created together. They share a job, of which each is a rank: they start, begin anew and end
/// together. A single actor is a gang of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GangSpec {
    /// Whether they outlive their handles.
    pub lifetime: Lifetime,
    /// How often their processes may be started again.
    pub restarts: u32,
    /// The GPUs that each of them claims, in thousandths.
    pub gpus: Share,
    /// Everything else that each of them claims, encoded by the shell; the cores pass it through.
    pub claims: Bytes,
    /// The actors by rank, at least one.
    pub actors: Vec<ActorSpec>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActorSpec {
    /// Index of its type in the registry of the binary.
    pub kind: u32,
    /// Its name, unique among live actors.
    pub name: Option<String>,
    /// Most `&self` calls at the same time, at least 1.
    pub concurrency: u32,
    /// Encoded arguments of the constructor.
    pub arguments: Bytes,
    /// References in the arguments whose values the constructor gets.
    pub needs: Vec<ObjectId>,
}

/// When an actor ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lifetime {
    /// As soon as nobody holds a handle, of it or of another one of its gang.
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
        member: RankId,
        /// Its incarnation.
        incarnation: IncarnationNumber,
    },
    /// Its process ended and is started again.
    Restarting,
    /// It has ended for good.
    Ended(ActorEnd),
}

impl GangSpec {
    /// Checks everything that does not depend on other actors.
    ///
    /// # Errors
    ///
    /// If there is no actor or too many, a name has a wrong length or is given twice, the arguments of all
    /// together are too large, or a detached actor has no name.
    pub fn check(&self) -> Result<(), CreateError> {
        match self.actors.len() {
            0 => return Err(CreateError::EmptyGang),
            1..=MAX_ACTORS => {}
            _ => return Err(CreateError::TooManyActors),
        }
        let mut names = BTreeSet::new();
        for actor in &self.actors {
            let bytes = actor.name.as_ref().map_or(1, String::len);
            if bytes == 0 || bytes > MAX_NAME {
                return Err(CreateError::NameLength { bytes });
            }
            if self.lifetime == Lifetime::Detached && actor.name.is_none() {
                return Err(CreateError::DetachedWithoutName);
            }
            if let Some(name) = actor.name.as_ref().filter(|name| !names.insert(*name)) {
                return Err(CreateError::NameInUse { name: name.clone() });
            }
        }
        let bytes = self.actors.iter().map(|actor| actor.arguments.len()).sum();
        if bytes > MAX_ARGUMENTS { Err(CreateError::ArgumentsTooLarge { bytes }) } else { Ok(()) }
    }

    /// The GPUs that all of them claim together.
    #[must_use]
    pub const fn total_gpus(&self) -> Share {
        Share(self.gpus.0.saturating_mul(self.actors.len() as u32))
    }
}
