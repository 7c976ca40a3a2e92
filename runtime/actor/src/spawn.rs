//! Starts actors under a supervisor.

use crate::actor::{Actor, Context};
use crate::actor_task::{ActorSource, ActorTask};
use crate::child_spec::ChildSpec;
use crate::mailbox::{Address, mailbox};
use crate::restart_policy::RestartHistory;
use crate::shutdown::shutdown_channel;
use crate::supervisor::{Child, Supervisor};
use tracing::Instrument;

/// Starts an actor. Under a supervisor that is stopping nothing starts, and the address is closed.
pub(crate) fn spawn<A: Actor>(
    supervisor: &Supervisor,
    spec: ChildSpec,
    source: ActorSource<A>,
) -> Address<A::Message> {
    let (address, mailbox) = mailbox(spec.capacity);
    let (sender, shutdown) = shutdown_channel();
    let (path, grace) = (supervisor.path_of(&spec.name), spec.grace);
    let task = ActorTask {
        path: path.clone(),
        source,
        address: address.clone(),
        mailbox,
        restarts: RestartHistory::new(spec.restart),
        grace,
        shutdown,
        fatal_errors: supervisor.fatal_errors.clone(),
    };
    supervisor.add(|| {
        let span = tracing::info_span!(parent: None, "actor", path);
        Child { path, grace, shutdown: sender, task: tokio::spawn(task.run().instrument(span)) }
    });
    address
}

impl<A: Actor> Context<A> {
    /// Spawns a child that `factory` builds now and again after each failure. A child that fails too often
    /// ends the whole system: see [`ActorSystem::run_until`](crate::ActorSystem::run_until).
    pub fn spawn<C: Actor>(
        &self,
        spec: ChildSpec,
        factory: impl FnMut() -> C + Send + 'static,
    ) -> Address<C::Message> {
        spawn(&self.children, spec, ActorSource::Factory(Box::new(factory)))
    }

    /// Spawns a child that cannot be built again, such as the owner of a connection. Its failure is logged
    /// and ends only this child.
    pub fn spawn_once<C: Actor>(&self, spec: ChildSpec, actor: C) -> Address<C::Message> {
        spawn(&self.children, spec, ActorSource::Once(Some(actor)))
    }
}
