//! What a process asks the coordinator about actors.

use std::sync::Arc;

use cohabit_application_core::{ActorId, GangSpec, HeldId};
use tokio::sync::oneshot;

use super::hold::Hold;
use super::member_process::MemberProcess;
use crate::error::{Error, Result};
use crate::values::held;

/// An answer that may bring a handle. If nobody reads it, the handle is given back.
struct HandleReply<'a, T> {
    process: &'a MemberProcess,
    reply: oneshot::Receiver<T>,
    handles: fn(T) -> Vec<ActorId>,
}

impl<T> HandleReply<'_, T> {
    async fn read(mut self) -> Result<T> {
        (&mut self.reply).await.map_err(|_| Error::Cancelled)
    }
}

impl<T> Drop for HandleReply<'_, T> {
    fn drop(&mut self) {
        self.reply.close();
        if let Ok(unread) = self.reply.try_recv() {
            self.process.release((self.handles)(unread).into_iter().map(HeldId::Actor).collect());
        }
    }
}

impl MemberProcess {
    /// Creates actors, of each of which the process then holds one handle. `holds` are the handles in the
    /// arguments of their constructors, by rank.
    ///
    /// # Errors
    /// If they cannot be created.
    pub(crate) async fn create(
        self: &Arc<MemberProcess>,
        gang: GangSpec,
        holds: Vec<Vec<Arc<Hold>>>,
    ) -> Result<Vec<ActorId>> {
        let carries = holds.iter().map(|holds| held(holds)).collect();
        let reply = self.with(|state| state.create(gang, carries));
        let reply = reply.map_err(|error| Error::of_creation(&error))?;
        drop(holds);
        let reply = HandleReply { process: self, reply, handles: Result::unwrap_or_default };
        reply.read().await?.map_err(|error| Error::of_creation(&error))
    }

    /// Finds a live actor by its name. The process then holds one handle.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn find(self: &Arc<MemberProcess>, name: &str) -> Result<ActorId> {
        let reply =
            self.with(|state| state.find(name.to_owned())).map_err(|error| Error::of_creation(&error))?;
        let reply = HandleReply { process: self, reply, handles: |actor| actor.into_iter().collect() };
        reply.read().await?.ok_or_else(|| Error::NotFound(name.to_owned()))
    }

    /// Stops an actor, and waits for the end of its process.
    ///
    /// # Errors
    /// If this process ends first.
    pub(crate) async fn stop(&self, actor: ActorId) -> Result<()> {
        self.with(|state| state.stop(actor)).await.map_err(|_| Error::Cancelled)
    }
}
