//! What has happened, written down outside of the cores, and the checks on it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cohabit_application_core::{
    ActorEnd, ActorId, CallError, CallNumber, MethodAccess, ObjectId, OnRestart, RequestNumber,
};
use cohabit_types::RankId;

use super::payload::Tag;

/// The records of a run.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The first violation.
    pub(super) violation: Option<String>,
    calls: BTreeMap<Tag, CallRecord>,
    /// How many actors each process has asked for, if it was not answered.
    asked: BTreeMap<(RankId, RequestNumber), u32>,
    /// The size of each gang, by its first actor, by which it is known below.
    gangs: BTreeMap<ActorId, u32>,
    /// Gangs that somebody stopped, or asked to be stopped.
    stopped: BTreeSet<ActorId>,
    /// The youngest actor.
    last: Option<ActorId>,
    /// This one and those before it were ended because the application was over.
    last_over: Option<ActorId>,
    /// Gangs with a constructor that failed.
    failed_constructors: BTreeSet<ActorId>,
    /// Gangs whose submission the head refused.
    pub(super) refused: BTreeSet<ActorId>,
    /// Gangs that were ended because nobody held them.
    unheld: BTreeSet<ActorId>,
    /// The last call that started, of each caller in each process of each actor.
    started: BTreeMap<(RankId, ActorId, RankId), CallNumber>,
    names: BTreeMap<String, BTreeSet<ActorId>>,
}

/// A call.
#[derive(Debug, Clone)]
pub(super) struct CallRecord {
    pub(super) caller: RankId,
    pub(super) actor: ActorId,
    pub(super) call: CallNumber,
    pub(super) access: MethodAccess,
    pub(super) on_restart: OnRestart,
    /// The references whose values it needs.
    needs: Vec<ObjectId>,
    pub(super) cancelled: bool,
    ended: bool,
    starts: Vec<RankId>,
    outcomes: Vec<Result<Bytes, CallError>>,
}

impl CallRecord {
    pub(super) const fn new(
        caller: RankId,
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
    pub(super) fn started(&mut self, tag: Tag, member: RankId, running: &[Tag], concurrency: u32) {
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
        let (is_stopped, gang) = (self.is_stopped(call.actor), self.gang_of(call.actor));
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
            Err(CallError::Ended(ActorEnd::ConstructorFailed(_))) => failed.contains(&gang),
            Err(CallError::Ended(ActorEnd::GivenUp(_))) => history.given_up || refused.contains(&gang),
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

    /// The coordinator ends the processes of a gang; `holder` is a process that holds an actor of it.
    pub(super) fn ended(&mut self, first: ActorId, holder: Option<RankId>) {
        if self.is_stopped(first) || self.failed_constructors.contains(&first) {
            return;
        }
        self.unheld.insert(first);
        if let Some(holder) = holder {
            self.violated(format!("the gang of actor {first} was ended although {holder} holds it"));
        }
    }

    /// The coordinator is asked for so many actors.
    pub(super) fn asked(&mut self, by: RankId, request: RequestNumber, actors: u32) {
        self.asked.insert((by, request), actors);
    }

    /// It has made them, or not.
    pub(super) fn answered(&mut self, by: RankId, request: RequestNumber, first: Option<&ActorId>) {
        let actors = self.asked.remove(&(by, request)).unwrap_or(1);
        if let Some(first) = first {
            self.gangs.insert(*first, actors);
            self.last = Some(first.of_rank(actors - 1));
        }
    }

    /// The first actor of the gang of this one.
    pub(super) fn gang_of(&self, actor: ActorId) -> ActorId {
        self.gangs.range(..=actor).next_back().map_or(actor, |(first, _)| *first)
    }

    /// The actors that were created together with this one, and it.
    pub(super) fn gang(&self, first: ActorId) -> impl Iterator<Item = ActorId> + use<> {
        let size = self.gangs.get(&first).copied().unwrap_or(1);
        (0..size).map(move |rank| first.of_rank(rank))
    }

    /// Somebody stops an actor, or asks for it.
    pub(super) fn stopped(&mut self, actor: ActorId) {
        self.stopped.insert(self.gang_of(actor));
    }

    pub(super) fn constructor_failed(&mut self, actor: ActorId) {
        self.failed_constructors.insert(self.gang_of(actor));
    }

    /// All actors are ended, for the application is over, until a further main comes.
    pub(super) const fn over(&mut self) {
        self.last_over = self.last;
    }

    /// Whether an actor was ended in another way than for want of holders.
    fn is_stopped(&self, actor: ActorId) -> bool {
        self.stopped.contains(&self.gang_of(actor)) || self.last_over.is_some_and(|last| actor <= last)
    }

    /// A handle has reached a process.
    pub(super) fn obtained(&mut self, actor: ActorId) {
        if self.unheld.contains(&self.gang_of(actor)) {
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
