//! What a process asks the coordinator about actors.

use std::sync::Arc;

use cohabit_application_core::{ActorId, ActorSpec};
use tokio::sync::oneshot;

use super::hold::ActorHold;
use super::member_process::MemberProcess;
use crate::error::{Error, Result};

/// An answer that may bring a handle. If nobody reads it, the handle is given back.
struct HandleReply<'a, T> {
    process: &'a MemberProcess,
    reply: oneshot::Receiver<T>,
    handle: fn(T) -> Option<ActorId>,
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
            self.process.release((self.handle)(unread).into_iter().collect());
        }
    }
}

impl MemberProcess {
    /// Creates an actor. `holds` are the handles in the arguments of its constructor.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) async fn create(
        self: &Arc<MemberProcess>,
        spec: ActorSpec,
        holds: Vec<Arc<ActorHold>>,
    ) -> Result<Arc<ActorHold>> {
        let reply = self.with(|state| state.create(spec)).map_err(|error| Error::of_creation(&error))?;
        drop(holds);
        let reply = HandleReply { process: self, reply, handle: |reply| reply.ok() };
        match reply.read().await? {
            Ok(actor) => Ok(ActorHold::held(self, actor)),
            Err(error) => Err(Error::of_creation(&error)),
        }
    }

    /// Finds a live actor by its name.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) async fn find(self: &Arc<MemberProcess>, name: &str) -> Result<Arc<ActorHold>> {
        let reply =
            self.with(|state| state.find(name.to_owned())).map_err(|error| Error::of_creation(&error))?;
        let reply = HandleReply { process: self, reply, handle: |actor| actor };
        let actor = reply.read().await?.ok_or_else(|| Error::NotFound(name.to_owned()))?;
        Ok(ActorHold::held(self, actor))
    }

    /// Stops an actor, and waits for the end of its process.
    ///
    /// # Errors
    /// If this process ends first.
    pub(crate) async fn stop(&self, actor: ActorId) -> Result<()> {
        self.with(|state| state.stop(actor)).await.map_err(|_| Error::Cancelled)
    }
}
