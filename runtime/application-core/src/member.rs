//! One process of an application: its handles, its calls, and the actor that it may hold. Its tasks are in
//! `member_tasks`, their streams in `member_streams`, its references in `member_references`, its questions in
//! `member_requests`.
//!
//! Methods are what the process does and what it receives; effects are what its shell does then, in order.
//! Whoever gets an effect with `carries` holds each of these handles once and gives them back with
//! [`Member::release`] after decoding (a decoded handle counts for itself, by [`Member::hold`]).

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use cohabit_types::{JobId, RankId};

use crate::actor_spec::ActorState;
use crate::call_queue::{CallQueue, Needs, QueueEffect};
use crate::creation::Creation;
use crate::dependents::{Callee, Dependents};
use crate::describe_member::{MemberParts, describe_member};
use crate::descriptions::{MemberDescription, MemberTopic};
use crate::errors::CallError;
use crate::frames::{CallRequest, Construction, FromCoordinator, ToCallee, ToCaller, ToCoordinator};
use crate::gate::{GateEffect, RunningCall};
use crate::held::HeldId;
use crate::held_actor::HeldActor;
use crate::ids::{ActorId, CallNumber, ObjectId, RequestNumber, Ticket};
use crate::known_nodes::KnownNodes;
use crate::limits::MAX_ARGUMENTS;
use crate::local_holds::LocalHolds;
use crate::member_effect::MemberEffect;
use crate::member_references::Chore;
use crate::object_value::CallValue;
use crate::references::References;
use crate::remake_call::RemakeCall;
use crate::stream_reader::ArrivedItem;
use crate::stream_window::ItemTotal;
use crate::task_calls::TaskCalls;
use crate::task_gate::TaskGate;
use crate::task_probes::TaskProbes;
use crate::task_queue::TaskAnswer;

/// A process of an application.
#[derive(Debug)]
pub struct Member {
    pub(crate) coordinator: RankId,
    last_request: RequestNumber,
    last_call: CallNumber,
    pub(crate) holds: LocalHolds,
    pub(crate) references: References,
    /// Calls that wait for references.
    pub(crate) dependents: Dependents,
    /// What follows from the last change.
    pub(crate) chores: VecDeque<Chore>,
    pub(crate) is_working: bool,
    queues: BTreeMap<ActorId, CallQueue>,
    /// Constructor arguments on their way to the coordinator, with the handles in them.
    pub(crate) creating: BTreeMap<RequestNumber, Creation>,
    actor: Option<HeldActor>,
    pub(crate) task_calls: TaskCalls,
    pub(crate) task_gate: TaskGate,
    pub(crate) task_probes: TaskProbes,
    /// Whether this process was told to end.
    ending: bool,
    pub(crate) nodes: KnownNodes,
    /// The calls that make lost objects again.
    pub(crate) remakes: BTreeMap<CallNumber, RemakeCall>,
    /// The last attempt that has ended, of each job.
    ended: BTreeMap<JobId, u32>,
}

impl Member {
    /// A process that holds nothing.
    #[must_use]
    pub const fn new(own: RankId, coordinator: RankId) -> Member {
        Member {
            coordinator,
            last_request: RequestNumber(0),
            last_call: CallNumber(0),
            holds: LocalHolds::new(),
            references: References::new(own),
            dependents: Dependents::new(),
            chores: VecDeque::new(),
            is_working: false,
            queues: BTreeMap::new(),
            creating: BTreeMap::new(),
            actor: None,
            task_calls: TaskCalls::new(),
            task_gate: TaskGate::new(),
            task_probes: TaskProbes::new(),
            ending: false,
            nodes: KnownNodes::new(),
            remakes: BTreeMap::new(),
            ended: BTreeMap::new(),
        }
    }

    /// Whether a connection from this member is let in: one that has ended is not.
    #[must_use]
    pub fn admits(&self, member: RankId) -> bool {
        self.ended.get(&member.job()).is_none_or(|ended| *ended < member.attempt.attempt)
    }

    /// Whether nothing is left: no handle, no call, no task, no question. An actor that the process holds
    /// counts.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_called = self.actor.is_some() || !self.task_gate.is_empty();
        let calls = !self.queues.is_empty() || !self.task_calls.is_empty();
        let holds = self.holds.len() > 0 || !self.references.is_empty();
        !holds && self.creating.is_empty() && !calls && !is_called
    }

    /// What this process does now.
    #[must_use]
    pub fn describe(&self, topic: MemberTopic) -> MemberDescription {
        let (queues, task_calls, task_gate) = (&self.queues, &self.task_calls, &self.task_gate);
        describe_member(topic, &MemberParts { queues, task_calls, task_gate })
    }

    /// Whether `call` would not say `Full` now.
    #[must_use]
    pub fn has_room(&self, actor: ActorId) -> bool {
        self.queues.get(&actor).is_none_or(CallQueue::has_room)
    }

    /// Calls a method of an actor, with the handles in the arguments; the answer is `Finish`.
    ///
    /// # Errors
    ///
    /// `Full` if too many calls to the actor have not ended, `Refused` if the arguments are too large or the
    /// process does not hold what it uses, `Dependency` if it needs the value of a call that failed.
    pub fn call(
        &mut self,
        actor: ActorId,
        request: CallRequest,
        carries: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) -> Result<CallNumber, CallError> {
        self.call_as(None, actor, request, carries, effects)
    }

    /// As `call`, with a reference to the value, which the process holds once.
    ///
    /// # Errors
    ///
    /// As `call`.
    pub fn call_for_reference(
        &mut self,
        actor: ActorId,
        request: CallRequest,
        carries: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) -> Result<(CallNumber, ObjectId), CallError> {
        let object = self.references.name();
        let call = self.call_as(Some(object), actor, request, carries, effects)?;
        Ok((call, object))
    }

    fn call_as(
        &mut self,
        reference: Option<ObjectId>,
        actor: ActorId,
        request: CallRequest,
        carries: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) -> Result<CallNumber, CallError> {
        if !self.has_room(actor) {
            return Err(CallError::Full);
        }
        check_size(&request.arguments)?;
        self.check_held(std::iter::once(&HeldId::Actor(actor)).chain(&carries))?;
        let missing = self.missing(&request.needs)?;
        self.holds.add(HeldId::Actor(actor));
        for carried in &carries {
            self.holds.add(*carried);
        }
        let call = self.next_call();
        if let Some(object) = reference {
            self.add_reference(object, call, Callee::Actor(actor));
        }
        let needs = if missing.is_empty() { Needs::Known } else { Needs::Unknown };
        if needs == Needs::Unknown {
            self.dependents.add(call, Callee::Actor(actor), missing);
        }
        let queue = self.queues.entry(actor).or_insert_with(|| {
            effects.push(MemberEffect::ToCoordinator(ToCoordinator::Watch { actor }));
            CallQueue::new()
        });
        let mut changes = Vec::new();
        queue.push(call, (request, carries), needs, &mut changes);
        self.carry_out(actor, changes, effects);
        Ok(call)
    }

    pub(crate) fn add_reference(&mut self, object: ObjectId, call: CallNumber, callee: Callee) {
        self.references.add_call(object, call, callee);
        self.holds.gain(HeldId::Object(object));
    }

    /// The caller dropped the future of its call. The call still ends with `Finish`.
    pub fn cancel(&mut self, actor: ActorId, call: CallNumber, effects: &mut Vec<MemberEffect>) {
        self.change_queue(actor, effects, |queue, changes| queue.cancel(call, changes));
    }

    /// Everything is known that a call needs.
    pub(crate) fn admit_dependent(
        &mut self,
        call: CallNumber,
        callee: Callee,
        effects: &mut Vec<MemberEffect>,
    ) {
        match callee {
            Callee::Actor(actor) => {
                self.change_queue(actor, effects, |queue, changes| queue.needs_known(call, changes));
            }
            Callee::Task => self.admit_task(call, effects),
        }
    }

    /// A call needs the value of one that failed.
    pub(crate) fn fail_dependent(
        &mut self,
        call: CallNumber,
        callee: Callee,
        error: CallError,
        effects: &mut Vec<MemberEffect>,
    ) {
        match callee {
            Callee::Actor(actor) => {
                self.change_queue(actor, effects, |queue, changes| queue.fail(call, error, changes));
            }
            Callee::Task => self.fail_task(call, error, effects),
        }
    }

    /// The process holds an actor no longer.
    pub(crate) fn forget_queue(&mut self, actor: ActorId) {
        self.queues.remove(&actor);
    }

    /// A constructor has ended: with the actor, or with the text of its error.
    pub fn constructed(&mut self, result: Result<(), String>, effects: &mut Vec<MemberEffect>) {
        let Some(actor) = &mut self.actor else { return };
        let incarnation = actor.incarnation();
        match result {
            Ok(()) => {
                effects.push(MemberEffect::ToCoordinator(ToCoordinator::Constructed { incarnation }));
                let mut changes = Vec::new();
                if !self.ending {
                    actor.gate.open(&mut changes);
                }
                self.pass(changes, effects);
            }
            Err(text) => {
                effects.push(MemberEffect::ToCoordinator(ToCoordinator::ConstructorFailed { text }));
            }
        }
    }

    /// A method has returned, or was interrupted (`Cancelled`). `carries` are the handles in its value, which
    /// the process still holds.
    pub fn finished(
        &mut self,
        ticket: Ticket,
        result: Result<CallValue, CallError>,
        carries: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) {
        let Some(actor) = &mut self.actor else { return };
        let mut changes = Vec::new();
        let Some(ended) = actor.gate.finish(ticket, &mut changes) else { return };
        self.answer(ended, result, carries, effects);
        self.pass(changes, effects);
        self.reconstruct_when_idle(effects);
    }

    /// A method has panicked. No call starts until the actor is constructed anew, here or by the end of this
    /// process, which happens after the running calls have ended.
    pub fn panicked(&mut self, ticket: Ticket, text: String, effects: &mut Vec<MemberEffect>) {
        if let Some(actor) = &mut self.actor {
            actor.gate.shut();
            actor.demand_construction();
        }
        self.finished(ticket, Err(CallError::Panicked(text)), Vec::new(), effects);
    }

    /// A frame of the coordinator.
    pub fn receive(&mut self, frame: FromCoordinator, effects: &mut Vec<MemberEffect>) {
        match frame {
            FromCoordinator::Created { request, result } => {
                let Creation { actors, carries } = self.creating.remove(&request).unwrap_or_default();
                if let Ok(first) = result {
                    let lent = (0..actors).map(|rank| HeldId::Actor(first.of_rank(rank)));
                    lent.for_each(|held| self.holds.settle(held, self.coordinator));
                }
                carries.into_iter().for_each(|held| self.release(held, effects));
                effects.push(MemberEffect::Created { request, result });
            }
            FromCoordinator::Found { request, actor } => {
                if let Some(actor) = actor {
                    self.holds.settle(HeldId::Actor(actor), self.coordinator);
                }
                effects.push(MemberEffect::Found { request, actor });
            }
            FromCoordinator::Stopped { request } => effects.push(MemberEffect::Stopped { request }),
            FromCoordinator::State { actor, state } => self.receive_state(actor, state, effects),
            FromCoordinator::MemberEnded { member } => self.member_ended(member, effects),
            FromCoordinator::Construct(construction) => self.construct(construction, effects),
            FromCoordinator::RunnerJoined { class, runner } => self.runner_joined(class, runner, effects),
            FromCoordinator::RunnerLeaves { runner } => self.runner_leaves(runner, effects),
            FromCoordinator::RunnerEnded { runner } => self.runner_ended(runner, effects),
            FromCoordinator::NoRunner { class, why } => self.no_runner(class, &why, effects),
            FromCoordinator::ServeTasks { class } => self.serve_tasks(&class, effects),
            FromCoordinator::Probe { probe } => self.probed(probe, effects),
            FromCoordinator::Deadlock { text } => self.deadlocked(&text, effects),
            FromCoordinator::Object(news) => self.receive_news(news, effects),
            FromCoordinator::Store(frame) => effects.push(MemberEffect::Store(frame)),
            FromCoordinator::Welcome { node } => self.nodes.welcome(node),
            FromCoordinator::NodeAt { node, at } => self.nodes.node_at(node, at),
            FromCoordinator::MemberAt { member, node } => self.nodes.member_at(member, node),
            FromCoordinator::Describe { request, topic } => {
                let description = Box::new(self.describe(topic));
                let frame = ToCoordinator::Description { request, description };
                effects.push(MemberEffect::ToCoordinator(frame));
            }
            FromCoordinator::End => self.end(effects),
        }
    }

    /// A frame of a caller, on a session that the caller dialed.
    pub fn receive_from_caller(&mut self, from: RankId, frame: ToCallee, effects: &mut Vec<MemberEffect>) {
        let mut changes = Vec::new();
        match frame {
            ToCallee::Call { actor, call, request, carries } => {
                let carries = self.accept_all(carries, from, effects);
                match self.actor.as_mut().filter(|held| held.actor() == actor) {
                    Some(held) => held.gate.arrive(from, call, request, carries, &mut changes),
                    None => self.refuse(from, call, actor, carries, effects),
                }
            }
            ToCallee::Run { call, task, carries } => {
                let carries = self.accept_all(carries, from, effects);
                self.task_arrives(from, call, task, carries, effects);
            }
            ToCallee::Recall { call } => self.recall_task_of(from, call, effects),
            ToCallee::Probe { call, probe } => self.task_probed(from, call, probe, effects),
            ToCallee::Deadlock { call, text } => self.task_deadlocked(from, call, &text, effects),
            ToCallee::Credit { call, items, bytes } => {
                self.credited(from, call, ItemTotal { items, bytes }, effects);
            }
            ToCallee::Cancel { call } => {
                self.cancel_task_of(from, call, effects);
                if let Some(actor) = &mut self.actor {
                    actor.gate.cancel(from, call, &mut changes);
                }
            }
        }
        self.pass(changes, effects);
    }

    /// A frame of the process of an actor or of tasks, on a session that this process dialed.
    pub fn receive_from_callee(&mut self, from: RankId, frame: ToCaller, effects: &mut Vec<MemberEffect>) {
        match frame {
            ToCaller::Answer { actor, call, result, carries } => {
                let carries = self.accept_all(carries, from, effects);
                let ended = self.queues.get_mut(&actor).and_then(|queue| queue.answered(from, call));
                match ended {
                    Some(arguments) => self.finish(actor, call, result, carries, arguments, effects),
                    None => carries.into_iter().for_each(|carried| self.release(carried, effects)),
                }
            }
            ToCaller::Item { call, number, item, carries } => {
                let carries = self.accept_all(carries, from, effects);
                self.item_arrives(from, ArrivedItem { call, number, item, carries }, effects);
            }
            ToCaller::Ran { call, result, carries, took } => {
                let carries = self.accept_all(carries, from, effects);
                self.task_ran(from, TaskAnswer { call, result, carries }, took, effects);
            }
            ToCaller::Parked { call } => self.task_parked(from, call, effects),
            ToCaller::Kept { call } => self.task_kept(from, call, effects),
            ToCaller::Returned { call } => self.task_returned(from, call, effects),
            ToCaller::Blocked { call, needs } => self.call_blocked(from, call, needs, effects),
            ToCaller::StillBlocked { call, probe } => self.call_still_blocked(call, probe, effects),
            ToCaller::Paused => self.runner_paused(from, effects),
            ToCaller::Resumed => self.runner_resumed(from, effects),
        }
    }

    /// The coordinator has told this process to end. The shell ends the actor, after what it runs.
    fn end(&mut self, effects: &mut Vec<MemberEffect>) {
        self.ending = true;
        match &mut self.actor {
            Some(actor) => {
                actor.gate.shut();
                effects.push(MemberEffect::End);
            }
            None => self.end_serving(effects),
        }
    }

    pub(crate) const fn next_call(&mut self) -> CallNumber {
        self.last_call = CallNumber(self.last_call.0 + 1);
        self.last_call
    }

    pub(crate) const fn next_request(&mut self) -> RequestNumber {
        self.last_request = RequestNumber(self.last_request.0 + 1);
        self.last_request
    }

    fn receive_state(&mut self, actor: ActorId, state: ActorState, effects: &mut Vec<MemberEffect>) {
        self.change_queue(actor, effects, |queue, changes| queue.state(state, changes));
    }

    fn change_queue(
        &mut self,
        actor: ActorId,
        effects: &mut Vec<MemberEffect>,
        change: impl FnOnce(&mut CallQueue, &mut Vec<QueueEffect>),
    ) {
        let mut changes = Vec::new();
        if let Some(queue) = self.queues.get_mut(&actor) {
            change(queue, &mut changes);
        }
        self.carry_out(actor, changes, effects);
    }

    fn member_ended(&mut self, member: RankId, effects: &mut Vec<MemberEffect>) {
        let ended = self.ended.entry(member.job()).or_insert(0);
        *ended = member.attempt.attempt.max(*ended);
        self.nodes.member_ended(member);
        effects.push(MemberEffect::Close { member });
        let actors: Vec<ActorId> = self.queues.keys().copied().collect();
        for actor in actors {
            self.change_queue(actor, effects, |queue, changes| queue.member_ended(member, changes));
        }
        let mut changes = Vec::new();
        if let Some(actor) = &mut self.actor {
            actor.gate.caller_ended(member, &mut changes);
        }
        self.pass(changes, effects);
        self.end_tasks_of(member, effects);
        let settled = self.holds.transfer(member, self.coordinator);
        effects.push(MemberEffect::ToCoordinator(ToCoordinator::Closed { member, settled }));
    }

    fn construct(&mut self, construction: Construction, effects: &mut Vec<MemberEffect>) {
        let mut construction = construction;
        // The actor holds them for as long as the process lives.
        let carries = std::mem::take(&mut construction.carries);
        self.accept_all(carries, self.coordinator, effects);
        let mut actor = HeldActor::new(construction);
        effects.push(actor.construct());
        self.actor = Some(actor);
    }

    fn reconstruct_when_idle(&mut self, effects: &mut Vec<MemberEffect>) {
        if !self.ending {
            effects.extend(self.actor.as_mut().and_then(HeldActor::reconstruct_when_idle));
        }
    }

    /// Answers a call that ended here, unless its caller has ended.
    fn answer(
        &mut self,
        ended: RunningCall,
        result: Result<CallValue, CallError>,
        carries: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) {
        let Some(actor) = self.actor.as_ref().map(HeldActor::actor) else { return };
        let RunningCall { caller: to, call } = ended;
        if self.admits(to) {
            let carries = self.carry_to(to, &carries, effects);
            effects.push(MemberEffect::ToCaller {
                to,
                frame: ToCaller::Answer { actor, call, result, carries },
            });
        }
    }

    fn refuse(
        &mut self,
        to: RankId,
        call: CallNumber,
        actor: ActorId,
        carries: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) {
        let result = Err(CallError::Refused(format!("this process does not hold actor {actor}")));
        effects.push(MemberEffect::ToCaller {
            to,
            frame: ToCaller::Answer { actor, call, result, carries: Vec::new() },
        });
        carries.into_iter().for_each(|carried| self.release(carried, effects));
    }

    /// A call of this process has ended.
    fn finish(
        &mut self,
        actor: ActorId,
        call: CallNumber,
        result: Result<CallValue, CallError>,
        carries: Vec<HeldId>,
        arguments: Vec<HeldId>,
        effects: &mut Vec<MemberEffect>,
    ) {
        self.end_call(call, result, carries, effects);
        arguments.into_iter().for_each(|carried| self.release(carried, effects));
        self.release(HeldId::Actor(actor), effects);
    }

    fn carry_out(&mut self, actor: ActorId, changes: Vec<QueueEffect>, effects: &mut Vec<MemberEffect>) {
        self.in_order(effects, |member, effects| {
            changes.into_iter().for_each(|change| member.carry_out_one(actor, change, effects));
        });
    }

    fn carry_out_one(&mut self, actor: ActorId, change: QueueEffect, effects: &mut Vec<MemberEffect>) {
        match change {
            QueueEffect::HandOver { to, call, request, carries } => {
                let carries = self.carry_to(to, &carries, effects);
                let frame = ToCallee::Call { actor, call, request, carries };
                effects.push(MemberEffect::ToCallee { to, frame });
            }
            QueueEffect::Cancel { to, call } => {
                effects.push(MemberEffect::ToCallee { to, frame: ToCallee::Cancel { call } });
            }
            QueueEffect::Fail { call, error, carries } => {
                self.finish(actor, call, Err(error), Vec::new(), carries, effects);
            }
        }
    }

    fn pass(&mut self, changes: Vec<GateEffect>, effects: &mut Vec<MemberEffect>) {
        for change in changes {
            match change {
                GateEffect::Start { ticket, request, carries } => {
                    let CallRequest { method, arguments, needs, .. } = request;
                    effects.push(MemberEffect::Start { ticket, method, arguments, needs, carries });
                }
                GateEffect::Interrupt { ticket } => effects.push(MemberEffect::Interrupt { ticket }),
                GateEffect::Drop { caller, call, carries } => {
                    let ended = RunningCall { caller, call };
                    self.answer(ended, Err(CallError::Cancelled), Vec::new(), effects);
                    carries.into_iter().for_each(|carried| self.release(carried, effects));
                }
            }
        }
    }
}

/// Checks the size of arguments.
pub(crate) fn check_size(arguments: &Bytes) -> Result<(), CallError> {
    let bytes = arguments.len();
    if bytes <= MAX_ARGUMENTS {
        return Ok(());
    }
    let text =
        format!("arguments of {bytes} bytes; a call takes at most {MAX_ARGUMENTS}: pass less at a time");
    Err(CallError::Refused(text))
}
