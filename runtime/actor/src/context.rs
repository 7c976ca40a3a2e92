//! What an actor can reach while it runs: itself, its children, its timers, the signal to stop.
//!
//! A context lives as long as one incarnation. All that it started ends with it: children stop in order,
//! timers and side tasks are cancelled. It never gives access to the mailbox.

use crate::failure::{ActorFailure, ActorPanic, Escalation};
use crate::{Actor, Address, ChildSpec, Registry, Shutdown, Supervisor};
use std::future::{Future, pending};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::sleep;

/// The surroundings of a running actor.
pub struct Context<A: Actor> {
    address: Address<A::Message>,
    children: Supervisor,
    escalations: mpsc::UnboundedReceiver<Escalation>,
    tasks: JoinSet<()>,
    shutdown: Shutdown,
    resolve: LoopControl,
}

/// What the actor wants for itself after the message at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopControl {
    Continue,
    Stop,
}

impl<A: Actor> Context<A> {
    pub(crate) fn new(
        path: &str,
        address: Address<A::Message>,
        shutdown: Shutdown,
        registry: Registry,
    ) -> Self {
        let (children, escalations) = Supervisor::new(path, registry);
        Self {
            address,
            children,
            escalations,
            tasks: JoinSet::new(),
            shutdown,
            resolve: LoopControl::Continue,
        }
    }

    /// The actor's own address; the same over all incarnations.
    pub fn address(&self) -> &Address<A::Message> {
        &self.address
    }

    /// The actor's path, such as `driver/journal`.
    pub fn path(&self) -> &str {
        self.children.path()
    }

    /// The names of the system.
    pub fn registry(&self) -> &Registry {
        self.children.registry()
    }

    /// The supervisor of the actor's children.
    pub fn children(&self) -> &Supervisor {
        &self.children
    }

    /// Spawns a child; see [`Supervisor::spawn`].
    pub fn spawn<C: Actor>(
        &self,
        spec: ChildSpec,
        factory: impl FnMut() -> C + Send + 'static,
    ) -> Address<C::Message> {
        self.children.spawn(spec, factory)
    }

    /// Spawns a child that cannot be built again; see [`Supervisor::spawn_once`].
    pub fn spawn_once<C: Actor>(&self, spec: ChildSpec, actor: C) -> Address<C::Message> {
        self.children.spawn_once(spec, actor)
    }

    /// Sends the actor this message after the span, unless the incarnation has ended by then.
    pub fn send_after(&mut self, span: Duration, message: A::Message) -> TaskHandle {
        let address = self.address.clone();
        self.spawn_task(async move {
            sleep(span).await;
            let _ = address.tell(message).await;
        })
    }

    /// Sends the actor a message again and again, the span after the one before has found room: a full
    /// mailbox delays messages and never bunches them.
    pub fn send_every(
        &mut self,
        span: Duration,
        mut message: impl FnMut() -> A::Message + Send + 'static,
    ) -> TaskHandle {
        let address = self.address.clone();
        self.spawn_task(async move {
            sleep(span).await;
            while address.tell(message()).await.is_ok() {
                sleep(span).await;
            }
        })
    }

    /// Runs a task beside the actor, such as the reading half of a connection. It speaks to the actor by
    /// messages; its panic is the actor's failure; it is cancelled with the incarnation.
    pub fn spawn_task(&mut self, task: impl Future<Output = ()> + Send + 'static) -> TaskHandle {
        TaskHandle(self.tasks.spawn(task))
    }

    /// Stops the actor after the message at hand. Messages still in the mailbox are dropped.
    pub fn stop(&mut self) {
        self.resolve = LoopControl::Stop;
    }

    /// The signal that the supervisor wants the actor to stop.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    pub(crate) fn should_continue(&self) -> bool {
        self.resolve == LoopControl::Continue
    }

    /// Waits for what makes the actor fail from outside: a child given up, a panic in a side task.
    pub(crate) async fn next_failure(&mut self) -> ActorFailure {
        loop {
            tokio::select! {
                Some(escalated) = self.escalations.recv() => return escalated.into(),
                Some(ended) = self.tasks.join_next() => {
                    if let Some(panicked) = ended.err().and_then(panicked) {
                        return panicked.into();
                    }
                }
                else => return pending().await,
            }
        }
    }
}

fn panicked(error: JoinError) -> Option<ActorPanic> {
    error.try_into_panic().ok().map(ActorPanic::from_payload)
}

/// A running timer or side task. Dropping it changes nothing.
#[derive(Debug, Clone)]
pub struct TaskHandle(AbortHandle);

impl TaskHandle {
    /// Ends it. A message that it has already put into the mailbox stays there.
    pub fn cancel(&self) {
        self.0.abort();
    }
}
