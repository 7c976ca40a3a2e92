//! What has happened, written down outside of the cores, and the checks on it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cohabit_application_core::{ActorEnd, ActorId, CallError, CallNumber, MethodAccess, ObjectId, OnRestart};
use cohabit_types::AttemptId;

use super::payload::Tag;

/// The records of a run.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The first violation.
    pub(super) violation: Option<String>,
    calls: BTreeMap<Tag, CallRecord>,
    /// Actors that somebody stopped, or asked to be stopped.
    pub(super) stopped: BTreeSet<ActorId>,
    /// The youngest actor.
    last: Option<ActorId>,
    /// This one and those before it were ended because the application was over.
    last_over: Option<ActorId>,
    pub(super) failed_constructors: BTreeSet<ActorId>,
    /// Actors whose submission the head refused.
    pub(super) refused: BTreeSet<ActorId>,
    /// Actors that were ended because nobody held them.
    unheld: BTreeSet<ActorId>,
    /// The last call that started, of each caller in each process of each actor.
    started: BTreeMap<(AttemptId, ActorId, AttemptId), CallNumber>,
    names: BTreeMap<String, BTreeSet<ActorId>>,
}

/// A call.
#[derive(Debug, Clone)]
pub(super) struct CallRecord {
    pub(super) caller: AttemptId,
    pub(super) actor: ActorId,
    pub(super) call: CallNumber,
    pub(super) access: MethodAccess,
    pub(super) on_restart: OnRestart,
    /// The references whose values it needs.
    needs: Vec<ObjectId>,
    pub(super) cancelled: bool,
    ended: bool,
    starts: Vec<AttemptId>,
    outcomes: Vec<Result<Bytes, CallError>>,
}

impl CallRecord {
    pub(super) const fn new(
        caller: AttemptId,
        (actor, call): (ActorId, CallNumber),
        access: MethodAccess,
        on_restart: OnRestart,
        needs: Vec<ObjectId>,
    ) -> CallRecord {
        CallRecord {
            caller,
            actor,
            call,
            access,
            on_restart,
            needs,
            cancelled: false,
            ended: false,
            starts: Vec::new(),
            outcomes: Vec::new(),
        }
    }
}

/// What is known of an actor's processes when a call to it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ActorHistory {
    /// A process of it has died.
    pub(super) died: bool,
    /// Its job has ended although nobody cancelled it.
    pub(super) given_up: bool,
}

impl Ledger {
    pub(super) fn violated(&mut self, detail: String) {
        self.violation.get_or_insert(detail);
    }

    pub(super) fn called(&mut self, tag: Tag, record: CallRecord) {
        self.calls.insert(tag, record);
    }

    pub(super) fn cancelled(&mut self, tag: Tag) {
        if let Some(call) = self.calls.get_mut(&tag) {
            call.cancelled = true;
        }
    }

    /// The references whose values a call needs.
    pub(super) fn needs(&self, tag: Tag) -> &[ObjectId] {
        self.calls.get(&tag).map_or(&[], |call| call.needs.as_slice())
    }

    /// A call has ended after its reference was dropped.
    pub(super) fn dropped(&mut self, tag: Tag) {
        let Some(call) = self.calls.get_mut(&tag) else { return };
        let (again, name) = (call.ended, call.call);
        call.ended = true;
        if again {
            self.violated(format!("call {name}, whose reference was dropped, ended twice"));
        }
    }

    /// A method starts in a process in which others run.
    pub(super) fn started(&mut self, tag: Tag, member: AttemptId, running: &[Tag], concurrency: u32) {
        let overlap = self.overlap(tag, running, concurrency);
        let Some(call) = self.calls.get_mut(&tag) else { return };
        let (caller, number, actor) = (call.caller, call.call, call.actor);
        let name = format!("call {number} of {caller} to actor {actor}");
        let again = call.starts.contains(&member);
        let forbidden = call.on_restart == OnRestart::Fail && !call.starts.is_empty();
        call.starts.push(member);
        if again {
            self.violated(format!("{name} started twice in {member}"));
        } else if forbidden {
            self.violated(format!("{name} started again in {member} and is not marked for it"));
        }
        let last = self.started.insert((caller, actor, member), number);
        if last.is_some_and(|last| last > number) {
            self.violated(format!("{name} started after a later call"));
        }
        if overlap {
            self.violated(format!("{name} started beside {} others", running.len()));
        }
    }

    fn overlap(&self, tag: Tag, running: &[Tag], concurrency: u32) -> bool {
        let access = |tag: &Tag| self.calls.get(tag).map(|call| call.access);
        let exclusive = running.iter().any(|tag| access(tag) == Some(MethodAccess::Exclusive));
        match access(&tag) {
            Some(MethodAccess::Exclusive) => !running.is_empty(),
            Some(MethodAccess::Shared) => exclusive || running.len() >= concurrency as usize,
            None => false,
        }
    }

    /// A method has ended in its process.
    pub(super) fn outcome(&mut self, tag: Tag, result: Result<Bytes, CallError>) {
        if let Some(call) = self.calls.get_mut(&tag) {
            call.outcomes.push(result);
        }
    }

    /// A call has ended at its caller.
    pub(super) fn finished(
        &mut self,
        tag: Tag,
        result: &Result<Bytes, CallError>,
        history: ActorHistory,
        need_failed: bool,
    ) {
        let Some(call) = self.calls.get(&tag) else { return };
        let is_stopped = self.is_stopped(call.actor);
        let (failed, refused) = (&self.failed_constructors, &self.refused);
        let Some(call) = self.calls.get_mut(&tag) else { return };
        let happened = match result {
            Ok(_) | Err(CallError::Failed(_) | CallError::Panicked(_) | CallError::StoreFull(_)) => {
                call.outcomes.contains(result)
            }
            Err(CallError::Cancelled | CallError::TimedOut(_)) => call.cancelled,
            Err(CallError::Dependency(_)) => need_failed,
            Err(CallError::Restarted) => {
                history.died && (call.on_restart == OnRestart::Fail || call.cancelled)
            }
            Err(CallError::Ended(ActorEnd::Stopped)) => is_stopped,
            Err(CallError::Ended(ActorEnd::ConstructorFailed(_))) => failed.contains(&call.actor),
            Err(CallError::Ended(ActorEnd::GivenUp(_))) => history.given_up || refused.contains(&call.actor),
            Err(
                CallError::Full
                | CallError::Refused(_)
                | CallError::Lost { .. }
                | CallError::NoRunner(_)
                | CallError::ObjectLost(_)
                | CallError::Deadlock(_),
            ) => false,
        };
        let (name, again) = (format!("call {} of {}", call.call, call.caller), call.ended);
        call.ended = true;
        if again {
            self.violated(format!("{name} ended twice"));
        } else if !happened {
            self.violated(format!("{name} ended as {result:?}, whose cause did not happen"));
        }
    }

    /// The coordinator ends the process of an actor; `holder` is a process that holds it.
    pub(super) fn ended(&mut self, actor: ActorId, holder: Option<AttemptId>) {
        if self.is_stopped(actor) || self.failed_constructors.contains(&actor) {
            return;
        }
        self.unheld.insert(actor);
        if let Some(holder) = holder {
            self.violated(format!("actor {actor} was ended although {holder} holds it"));
        }
    }

    /// An actor was made.
    pub(super) const fn made(&mut self, actor: ActorId) {
        self.last = Some(actor);
    }

    /// All actors are ended, for the application is over, until a further main comes.
    pub(super) const fn over(&mut self) {
        self.last_over = self.last;
    }

    /// Whether an actor was ended in another way than for want of holders.
    fn is_stopped(&self, actor: ActorId) -> bool {
        self.stopped.contains(&actor) || self.last_over.is_some_and(|last| actor <= last)
    }

    /// A handle has reached a process.
    pub(super) fn obtained(&mut self, actor: ActorId) {
        if self.unheld.contains(&actor) {
            self.violated(format!(
                "a handle of actor {actor} came after the actor was ended as held by nobody"
            ));
        }
    }

    /// An actor has a name; `is_over` says of another one whether its job has ended.
    pub(super) fn named(&mut self, name: &str, actor: ActorId, is_over: impl Fn(ActorId) -> bool) {
        let others = self.names.entry(name.to_owned()).or_default();
        let both = others.range(..actor).next_back().copied().filter(|older| !is_over(*older));
        others.insert(actor);
        if let Some(older) = both {
            self.violated(format!("actors {older} and {actor} both have the name '{name}'"));
        }
    }
}
