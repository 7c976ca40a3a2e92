//! Actors that are to be created, as builders describe them.

use std::sync::Arc;

use cohabit_application_core::{ActorId, ActorSpec, GangSpec, Lifetime};

use crate::error::{Error, Result};
use crate::options::ActorOptions;
use crate::process::{Hold, MemberProcess};

/// An actor that is to be created.
pub(crate) struct DescribedActor {
    pub(crate) spec: ActorSpec,
    pub(crate) options: ActorOptions,
    pub(crate) lifetime: Lifetime,
    /// The handles in the arguments of its constructor.
    pub(crate) holds: Vec<Arc<Hold>>,
}

/// Creates actors that share a job, which claims what the options say: waits until the values of references
/// in their arguments are known. The process then holds one handle of each.
///
/// # Errors
/// If they cannot be created.
pub(crate) async fn create_actors(
    process: &Arc<MemberProcess>,
    lifetime: Lifetime,
    options: &ActorOptions,
    described: Vec<DescribedActor>,
) -> Result<Vec<ActorId>> {
    for actor in &described {
        process.all_known(&actor.spec.needs).await.map_err(Error::of_call)?;
    }
    let (gpus, claims) = options.claims.encode(described.len() as u32).map_err(Error::Refused)?;
    let (actors, holds) = described.into_iter().map(|actor| (actor.spec, actor.holds)).unzip();
    process.create(GangSpec { lifetime, restarts: options.restarts, gpus, claims, actors }, holds).await
}
