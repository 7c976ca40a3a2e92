//! Holds the actor of this process: constructs it, runs its methods, and lets it save its work at the end.
//!
//! Everything runs on one thread. A method is polled at once when its call arrives; only one that has to wait
//! becomes a task of its own.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use cohabit_application_core::{CallError, IncarnationNumber, Ticket};
use futures::FutureExt;
use futures::future::{AbortHandle, Aborted};
use tokio::sync::Notify;
use tokio::task::spawn_local;
use tokio::time::timeout;

use crate::arguments::CallArguments;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::instance::{ActorInstance, RegisteredActor};
use crate::process::{ArrivedArguments, HostWork, MemberProcess};
use crate::registry::ActorRegistry;
use crate::returned::{CallEnd, CallFuture, abortable, panic_text, short};

/// How long methods may go on after the process was told to end, before they are ended at their next await.
const STOPPING_PATIENCE: Duration = Duration::from_secs(10);

/// The actor of this process, or none yet.
pub(crate) struct ActorHost {
    process: Arc<MemberProcess>,
    held: RefCell<Option<(&'static RegisteredActor, ActorInstance)>>,
    /// Whether its last construction failed.
    has_failed: Cell<bool>,
    running: RefCell<HashMap<Ticket, AbortHandle>>,
    phase: Cell<HostPhase>,
    /// A method has ended.
    ended: Notify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostPhase {
    Serving,
    /// The process is to end: nothing new begins.
    Stopping,
}

impl ActorHost {
    pub(crate) fn new(process: Arc<MemberProcess>) -> Rc<ActorHost> {
        Rc::new(ActorHost {
            process,
            held: RefCell::new(None),
            has_failed: Cell::new(false),
            running: RefCell::default(),
            phase: Cell::new(HostPhase::Serving),
            ended: Notify::new(),
        })
    }

    /// Does what the core has asked for.
    pub(crate) fn run(self: &Rc<ActorHost>) {
        while let Some(work) = self.process.with(|state| state.take_work()) {
            match (work, self.phase.get()) {
                (HostWork::Interrupt { ticket }, _) => {
                    if let Some(running) = self.running.borrow().get(&ticket) {
                        running.abort();
                    }
                }
                (HostWork::Construct { .. } | HostWork::Start { .. }, HostPhase::Stopping) => {}
                (HostWork::Construct { kind, incarnation, arguments }, HostPhase::Serving) => {
                    self.construct(kind, incarnation, arguments);
                }
                (HostWork::Start { ticket, method, arguments }, HostPhase::Serving) => {
                    self.start(ticket, method, arguments);
                }
                (HostWork::StartTask(start), _) => {
                    tracing::warn!(ticket = %start.task.ticket(), "the process of an actor got a task");
                }
            }
        }
    }

    fn construct(
        self: &Rc<ActorHost>,
        kind: u32,
        incarnation: IncarnationNumber,
        arguments: ArrivedArguments,
    ) {
        self.held.replace(None);
        let context = Context::new(incarnation.0, &self.process);
        let host = Rc::clone(self);
        spawn_local(async move {
            let constructing = AssertUnwindSafe(host.make(kind, context, arguments)).catch_unwind();
            let result = match constructing.await {
                Ok(Ok(held)) => {
                    host.held.replace(Some(held));
                    Ok(())
                }
                Ok(Err(error)) => Err(short(error.to_string())),
                Err(panic) => Err(format!("it panicked: {}", panic_text(&*panic))),
            };
            host.has_failed.set(result.is_err());
            host.process.with(|state| state.constructed(result));
            host.run();
        });
    }

    /// Runs the constructor.
    async fn make(
        &self,
        kind: u32,
        context: Context,
        arguments: ArrivedArguments,
    ) -> Result<(&'static RegisteredActor, ActorInstance)> {
        let unknown = || CallError::Refused(format!("the program has no actor number {kind}"));
        let entry = ActorRegistry::get().entry(kind).ok_or_else(unknown).map_err(Error::of_call)?;
        let arguments = CallArguments::fetch(&self.process, arguments).await.map_err(Error::of_call)?;
        let constructing = (entry.construct)(&arguments, context).map_err(Error::of_call)?;
        // What was decoded counts for itself.
        drop(arguments);
        Ok((entry, constructing.await?))
    }

    fn start(self: &Rc<ActorHost>, ticket: Ticket, method: u32, arguments: ArrivedArguments) {
        let begun = match CallArguments::at_once(&self.process, arguments) {
            Ok(arguments) => self.begin(method, &arguments),
            Err(arguments) => Ok(Rc::clone(self).begin_later(method, arguments)),
        };
        let future = match begun {
            Ok(future) => future,
            Err(error) => return self.process.with(|state| state.finished(ticket, Err(error), Vec::new())),
        };
        let (handle, registration) = AbortHandle::new_pair();
        let mut running = abortable(future, registration);
        let mut context = std::task::Context::from_waker(Waker::noop());
        match running.poll_unpin(&mut context) {
            Poll::Ready(end) => self.finish(ticket, end),
            Poll::Pending => {
                self.running.borrow_mut().insert(ticket, handle);
                let host = Rc::clone(self);
                // The task polls it again at once, and is woken from then on.
                spawn_local(async move {
                    let end = running.await;
                    host.running.borrow_mut().remove(&ticket);
                    host.finish(ticket, end);
                    host.ended.notify_one();
                    host.run();
                });
            }
        }
    }

    /// A method that begins when the values of its arguments are here.
    fn begin_later(self: Rc<ActorHost>, method: u32, arguments: ArrivedArguments) -> CallFuture {
        Box::pin(async move {
            let arguments = CallArguments::fetch(&self.process, arguments).await?;
            let future = self.begin(method, &arguments)?;
            drop(arguments);
            future.await
        })
    }

    fn begin(&self, method: u32, arguments: &CallArguments) -> Result<CallFuture, CallError> {
        let held = self.held.borrow();
        let (entry, instance) =
            held.as_ref().ok_or_else(|| CallError::Refused("the actor is not constructed".into()))?;
        match ActorRegistry::get().method(method) {
            Some((of, method)) if std::ptr::eq(of, *entry) => (method.run)(instance.clone(), arguments),
            called => {
                let called = called.map_or("unknown", |(of, _)| of.origin.name);
                let text = format!(
                    "the actor is a {}, and was called as a {called}: name the right type",
                    entry.origin.name
                );
                Err(CallError::Refused(text))
            }
        }
    }

    fn finish(&self, ticket: Ticket, end: CallEnd) {
        match end {
            Ok(Ok(Ok(returned))) => {
                let (value, carries, holds) = returned.into_parts();
                self.process.with(|state| state.finished(ticket, Ok(value), carries));
                drop(holds);
            }
            Ok(Ok(Err(error))) => {
                self.process.with(|state| state.finished(ticket, Err(error), Vec::new()));
            }
            Ok(Err(panic)) => {
                let text = panic_text(&*panic);
                self.process.with(|state| state.panicked(ticket, text));
            }
            Err(Aborted) => {
                self.process.with(|state| state.finished(ticket, Err(CallError::Cancelled), Vec::new()));
            }
        }
    }

    /// Whether there is no actor, for its constructor failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.get()
    }

    /// Ends the actor. If it has something to save, waits for its methods, and calls `stopping`: returns
    /// whether that went well.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.phase.set(HostPhase::Stopping);
        let stopping = self.held.borrow().as_ref().and_then(|(entry, _)| entry.stopping);
        let Some(stopping) = stopping else { return Ok(()) };
        if timeout(STOPPING_PATIENCE, self.idle()).await.is_err() {
            self.running.borrow().values().for_each(AbortHandle::abort);
            self.idle().await;
        }
        let Some((_, instance)) = self.held.take() else { return Ok(()) };
        let stopped = AssertUnwindSafe(stopping(instance)).catch_unwind().await;
        stopped.unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic)))?)
    }

    async fn idle(&self) {
        while !self.running.borrow().is_empty() {
            self.ended.notified().await;
        }
    }
}
