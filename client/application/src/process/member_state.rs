//! The state of a process: the core, its sessions, and who waits for what.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use cohabit_application_core::{
    ActorId, CallError, CallNumber, CallValue, CreateError, FromCoordinator, FromStore, GangSpec, HeldId,
    IncarnationNumber, Member, MemberEffect, NodeNumber, RequestNumber, Ticket, ToCallee, ToCaller,
    ToCoordinator, ToStore,
};
use cohabit_types::{RankId, Rendezvous};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::arrived::ArrivedArguments;
use super::calls::{Backlog, CallTarget, PendingCall, StreamItem};
use super::reference_table::ReferenceTable;
use super::running_task::UnknownCalls;
use super::task_table::{TaskStart, TaskTable};
use crate::transport::SessionEnd;

/// What the host of the actor or of tasks has to do, in order.
#[derive(Debug)]
pub(crate) enum HostWork {
    /// Drop the actor, if there is one, and construct it.
    Construct { kind: u32, incarnation: IncarnationNumber, arguments: ArrivedArguments },
    /// Run a method.
    Start { ticket: Ticket, method: u32, arguments: ArrivedArguments },
    /// End a method at its next await.
    Interrupt { ticket: Ticket },
    /// Run a task.
    StartTask(TaskStart),
}

/// What the core has said that concerns the process as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProcessEvent {
    /// Its store is to do this.
    Store(ToStore),
    /// A task was interrupted, and should end soon.
    Interrupted(Ticket),
    /// It is to end.
    End,
    /// It is to end with an error: its actor has panicked.
    Failed,
}

/// Where a process is asked for what its state cannot do: connections, timers and its end.
#[derive(Debug)]
pub(crate) struct Outlets {
    pub(crate) dial: UnboundedSender<RankId>,
    pub(crate) events: UnboundedSender<ProcessEvent>,
}

/// The answer to a creation.
pub(super) type ActorsReply = Result<Vec<ActorId>, CreateError>;

/// Somebody who waits for actors.
struct AwaitedActors {
    /// How many.
    count: u32,
    reply: oneshot::Sender<ActorsReply>,
}

/// The state of a process; `H` holds an actor or an object, and is dropped outside of the lock.
pub(crate) struct MemberState<H> {
    pub(super) member: Member,
    own: RankId,
    pub(super) coordinator: SessionEnd<ToCoordinator>,
    /// Members whose actors this process calls, or which run its tasks.
    pub(super) callees: BTreeMap<RankId, SessionEnd<ToCallee>>,
    /// Members that call the actor of this process, or which sent it tasks.
    pub(super) callers: BTreeMap<RankId, SessionEnd<ToCaller>>,
    pub(super) calls: HashMap<CallNumber, PendingCall>,
    pub(super) backlogs: BTreeMap<CallTarget, Backlog<H>>,
    creations: HashMap<RequestNumber, AwaitedActors>,
    searches: HashMap<RequestNumber, oneshot::Sender<Option<ActorId>>>,
    stops: HashMap<RequestNumber, oneshot::Sender<()>>,
    pub(super) references: ReferenceTable,
    /// Whether a call has to end before all others that are limited.
    pub(super) has_new_deadline: bool,
    work: VecDeque<HostWork>,
    /// Whether the host has not been told of some of it.
    has_new_work: bool,
    pub(super) tasks: TaskTable,
    pub(super) effects: Vec<MemberEffect>,
    pub(super) unneeded: Vec<Arc<H>>,
    outlets: Outlets,
}

impl<H> MemberState<H> {
    pub(super) fn new(
        coordinator: RankId,
        own: RankId,
        outlets: Outlets,
        unknown_calls: UnknownCalls,
    ) -> MemberState<H> {
        MemberState {
            member: Member::new(own, coordinator),
            own,
            coordinator: SessionEnd::new(own, coordinator),
            callees: BTreeMap::new(),
            callers: BTreeMap::new(),
            calls: HashMap::new(),
            backlogs: BTreeMap::new(),
            creations: HashMap::new(),
            searches: HashMap::new(),
            stops: HashMap::new(),
            references: ReferenceTable::default(),
            has_new_deadline: false,
            work: VecDeque::new(),
            has_new_work: false,
            tasks: TaskTable::new(unknown_calls),
            effects: Vec::new(),
            unneeded: Vec::new(),
            outlets,
        }
    }

    pub(crate) fn hold(&mut self, held: HeldId) -> bool {
        self.member.hold(held)
    }

    pub(crate) fn release(&mut self, all: impl IntoIterator<Item = HeldId>) {
        for held in all {
            self.member.release(held, &mut self.effects);
        }
    }

    /// A handle or a reference, with all its clones, was dropped.
    pub(super) fn give_back(&mut self, held: HeldId) {
        match held {
            HeldId::Actor(_) => {}
            HeldId::Object(object) => self.references.forget(object),
        }
        self.release([held]);
    }

    pub(crate) fn create(
        &mut self,
        gang: GangSpec,
        carries: Vec<Vec<HeldId>>,
    ) -> Result<oneshot::Receiver<ActorsReply>, CreateError> {
        let count = gang.actors.len() as u32;
        let request = self.member.create(gang, carries, &mut self.effects)?;
        let (reply, receiver) = oneshot::channel();
        self.creations.insert(request, AwaitedActors { count, reply });
        Ok(receiver)
    }

    pub(crate) fn find(&mut self, name: String) -> Result<oneshot::Receiver<Option<ActorId>>, CreateError> {
        let request = self.member.find(name, &mut self.effects)?;
        let (sender, receiver) = oneshot::channel();
        self.searches.insert(request, sender);
        Ok(receiver)
    }

    pub(crate) fn stop(&mut self, actor: ActorId) -> oneshot::Receiver<()> {
        let request = self.member.stop(actor, &mut self.effects);
        let (sender, receiver) = oneshot::channel();
        self.stops.insert(request, sender);
        receiver
    }

    /// The store in this process has something to say to the coordinator.
    pub(crate) fn store_says(&mut self, word: FromStore) {
        self.member.from_store(word, &mut self.effects);
    }

    /// Where the store of a node listens, as far as this process knows.
    pub(crate) fn address_of(&self, node: NodeNumber) -> Option<Rendezvous> {
        self.member.address_of(node).cloned()
    }

    pub(crate) fn take_work(&mut self) -> Option<HostWork> {
        self.work.pop_front()
    }

    pub(crate) fn constructed(&mut self, result: Result<(), String>) {
        self.member.constructed(result, &mut self.effects);
    }

    pub(crate) fn finished(
        &mut self,
        ticket: Ticket,
        result: Result<CallValue, CallError>,
        carries: Vec<HeldId>,
    ) {
        self.member.finished(ticket, result, carries, &mut self.effects);
    }

    pub(crate) fn panicked(&mut self, ticket: Ticket, text: String) {
        self.member.panicked(ticket, text, &mut self.effects);
    }

    pub(super) fn take_unneeded(&mut self) -> Vec<Arc<H>> {
        std::mem::take(&mut self.unneeded)
    }

    /// Whether all that was sent has arrived.
    pub(super) fn is_settled(&self) -> bool {
        self.coordinator.is_settled()
            && self.callees.values().all(SessionEnd::is_settled)
            && self.callers.values().all(SessionEnd::is_settled)
    }

    /// Carries out the effects of the core, and those that follow from them.
    pub(super) fn carry_out(&mut self) {
        while !self.effects.is_empty() {
            for effect in std::mem::take(&mut self.effects) {
                self.carry_out_one(effect);
            }
        }
    }

    fn carry_out_one(&mut self, effect: MemberEffect) {
        match effect {
            MemberEffect::ToCoordinator(frame) => self.coordinator.send(frame),
            MemberEffect::ToCallee { to, frame } => {
                let (own, dial) = (self.own, &self.outlets.dial);
                let session = self.callees.entry(to).or_insert_with(|| {
                    // Nobody dials any more when the process ends.
                    let _ended = dial.send(to);
                    SessionEnd::new(own, to)
                });
                session.send(frame);
            }
            MemberEffect::ToCaller { to, frame } => {
                if let Some(session) = self.callers.get_mut(&to) {
                    session.send(frame);
                }
            }
            MemberEffect::Close { member } => self.close(member),
            MemberEffect::Created { request, result } => self.reply_created(request, result),
            MemberEffect::Found { request, actor } => {
                let waiting = self.searches.remove(&request);
                let unread = match waiting {
                    Some(waiting) => waiting.send(actor).err().flatten(),
                    None => actor,
                };
                self.release(unread.map(HeldId::Actor));
            }
            MemberEffect::Stopped { request } => {
                // Nobody may wait for it any more.
                let _told = self.stops.remove(&request).map(|waiting| waiting.send(()));
            }
            MemberEffect::Item { call, number: _, item, carries } => {
                self.pass_item(call, StreamItem { item, carries });
            }
            MemberEffect::MakeMore { ticket } => self.tasks.make_more(ticket),
            MemberEffect::Finish { call, result, carries } => self.finish_call(call, result, carries),
            MemberEffect::ObjectReady { object, call } => self.object_ready(object, call),
            MemberEffect::Opened { request, carries } => {
                let unread = self.references.opened(request, carries);
                self.release(unread);
            }
            MemberEffect::Construct { kind, incarnation, arguments: bytes, needs, actor: _ } => {
                // The core keeps the handles in them.
                let arguments = ArrivedArguments { bytes, needs, carries: Vec::new() };
                self.push_work(HostWork::Construct { kind, incarnation, arguments });
            }
            MemberEffect::Start { ticket, method, arguments: bytes, needs, carries } => {
                let arguments = ArrivedArguments { bytes, needs, carries };
                self.push_work(HostWork::Start { ticket, method, arguments });
            }
            MemberEffect::StartTask { ticket, function, arguments: bytes, needs, carries } => {
                let arguments = ArrivedArguments { bytes, needs, carries };
                let start = self.tasks.start(ticket, function, arguments, self.member.store_as(ticket));
                start.into_iter().for_each(|start| self.push_work(HostWork::StartTask(start)));
            }
            MemberEffect::Interrupt { ticket } if self.tasks.interrupt(ticket) => {
                self.tell(ProcessEvent::Interrupted(ticket));
            }
            MemberEffect::Interrupt { ticket } => self.push_work(HostWork::Interrupt { ticket }),
            MemberEffect::Rest { rest } => self.tasks.begin_rest(rest),
            MemberEffect::Store(word) => self.tell(ProcessEvent::Store(word)),
            MemberEffect::End => self.tell(ProcessEvent::End),
            MemberEffect::Fail => self.tell(ProcessEvent::Failed),
        }
    }

    fn push_work(&mut self, work: HostWork) {
        self.work.push_back(work);
        self.has_new_work = true;
    }

    pub(super) fn clear_work(&mut self) {
        self.work.clear();
    }

    /// Whether there is work since this was asked before.
    pub(super) const fn take_new_work(&mut self) -> bool {
        std::mem::replace(&mut self.has_new_work, false)
    }

    /// Whether the next call that may be late is another one since this was asked before.
    pub(super) const fn take_new_deadline(&mut self) -> bool {
        std::mem::replace(&mut self.has_new_deadline, false)
    }

    fn tell(&self, event: ProcessEvent) {
        // Nobody listens any more when the process ends.
        let _ended = self.outlets.events.send(event);
    }

    fn reply_created(&mut self, request: RequestNumber, result: Result<ActorId, CreateError>) {
        let Some(AwaitedActors { count, reply }) = self.creations.remove(&request) else { return };
        let actors = result.map(|first| (0..count).map(|rank| first.of_rank(rank)).collect());
        let unread = reply.send(actors).err().and_then(Result::ok);
        self.release(unread.into_iter().flatten().map(HeldId::Actor));
    }

    fn close(&mut self, member: RankId) {
        if let Some(session) = self.callees.remove(&member) {
            session.close();
        }
        if let Some(session) = self.callers.remove(&member) {
            session.close();
        }
    }
}

impl<H> MemberState<H> {
    pub(super) fn receive(&mut self, frame: FromCoordinator) {
        self.member.receive(frame, &mut self.effects);
    }

    pub(super) fn receive_from_callee(&mut self, from: RankId, frame: ToCaller) {
        self.member.receive_from_callee(from, frame, &mut self.effects);
    }

    pub(super) fn receive_from_caller(&mut self, from: RankId, frame: ToCallee) {
        self.member.receive_from_caller(from, frame, &mut self.effects);
    }
}
