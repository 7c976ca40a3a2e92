//! The shell of a simulated process: it carries out the effects of its core and runs its user's code.

use std::collections::VecDeque;

use cohabit_application_core::{
    ActorId, CallError, CallNumber, CallValue, HeldId, IncarnationNumber, MemberEffect, Packet,
    RequestNumber, TaskWait, Ticket, ToCallee, ToCaller, ToCoordinator, ToDirectory,
};
use cohabit_types::RankId;

use super::event::{AnyFrame, ApplicationEvent, End, Pair};
use super::object_process::{FailedNeed, HandleOwner, StorePurpose};
use super::open_stream::UnreadItem;
use super::payload::{Tag, decode, encode};
use super::planted_bug::ApplicationBug;
use super::process::{LiveActor, OpenRequest, Process, ProcessCode};
use super::world::{ApplicationWorld, ProgramPhase};

impl ApplicationWorld {
    /// Lets a process do something and carries out the effects in order. It may be killed before each.
    pub(super) fn drive(&mut self, member: RankId, act: impl FnOnce(&mut Process, &mut Vec<MemberEffect>)) {
        let Some(process) = self.processes.get_mut(&member) else { return };
        let mut more = Vec::new();
        act(process, &mut more);
        let mut effects: VecDeque<MemberEffect> = more.into();
        while let Some(effect) = effects.pop_front() {
            if self.now < self.quiet_at && self.random.chance(self.death) {
                self.counters.kills += 1;
                self.kill(member, 137);
            }
            if !self.processes.contains_key(&member) {
                return;
            }
            self.digest.record_event(self.now, &effect);
            self.recorder.add(self.now, || format!("{member}: {effect:?}"));
            let mut more = Vec::new();
            self.carry_out(member, effect, &mut more);
            effects.extend(more);
        }
    }

    fn carry_out(&mut self, member: RankId, effect: MemberEffect, more: &mut Vec<MemberEffect>) {
        match effect {
            MemberEffect::ToCoordinator(ToCoordinator::Object(ToDirectory::Resolve { .. }))
                if self.plant == Some(ApplicationBug::LostResolve) => {}
            MemberEffect::ToCoordinator(frame) => {
                let pair = Pair { dialer: member, acceptor: self.own };
                self.send(pair, End::Dialer, AnyFrame::ToCoordinator(frame));
            }
            MemberEffect::ToCallee { to, mut frame } => {
                if let ToCallee::Run { task, .. } = &mut frame {
                    self.task_ledger.sent(decode(&task.arguments).0, to);
                    self.counters.resumed_streams += u64::from(task.resume.is_some());
                    task.resume.take_if(|_| self.plant == Some(ApplicationBug::RepeatedItems));
                }
                self.send(Pair { dialer: member, acceptor: to }, End::Dialer, AnyFrame::ToCallee(frame));
            }
            MemberEffect::ToCaller { to, frame } => {
                if !self.passes(&frame) {
                    return;
                }
                self.send(Pair { dialer: to, acceptor: member }, End::Acceptor, AnyFrame::ToCaller(frame));
            }
            MemberEffect::Close { member: other } => self.close_sessions(member, other),
            MemberEffect::Created { request, result } => self.created(member, request, result.ok()),
            MemberEffect::Found { request, actor } => self.found(member, request, actor, more),
            MemberEffect::Stopped { request } => _ = self.process(member).requests.remove(&request),
            MemberEffect::Finish { call, result, carries } => {
                self.finish(member, call, &result, more);
                self.give_back(member, carries, more);
            }
            MemberEffect::ObjectReady { object, call } => self.object_ready(member, object, call, more),
            MemberEffect::Opened { request, carries } => self.opened(member, request, carries, more),
            MemberEffect::Construct { actor, kind: concurrency, incarnation, arguments, needs } => {
                self.construct(member, LiveActor { actor, incarnation, concurrency }, more);
                self.process(member).arguments = arguments.clone();
                self.take_handles(member, &arguments, HandleOwner::Process, more);
                self.read_needs(member, needs, FailedNeed::Possible, more);
            }
            MemberEffect::Start { ticket, method: _, arguments, needs, carries } => {
                self.start_method(member, ticket, decode(&arguments).0);
                self.take_handles(member, &arguments, HandleOwner::Process, more);
                self.read_needs(member, needs, FailedNeed::Forbidden, more);
                self.give_back(member, carries, more);
            }
            MemberEffect::StartTask { ticket, function: _, arguments, needs, carries } => {
                self.start_task(member, ticket, &arguments, &needs, more);
                self.read_needs(member, needs, FailedNeed::Forbidden, more);
                self.give_back(member, carries, more);
                if self.plant == Some(ApplicationBug::ManySlots) {
                    self.process(member).core.task_waits(ticket, TaskWait::Tasks, more);
                }
            }
            MemberEffect::Item { call, number, item, carries } => {
                self.item_arrives(member, call, UnreadItem { number, item, carries }, more);
            }
            MemberEffect::MakeMore { ticket } => self.make_more(member, ticket, more),
            MemberEffect::Rest { rest } => self.rest(member, rest),
            MemberEffect::Store(frame) => self.store_hears(member, frame),
            MemberEffect::End => self.end_process(member),
            MemberEffect::Fail => self.fail_process(member),
            MemberEffect::Interrupt { ticket } if self.task(member, ticket).is_some() => {
                self.interrupt_task(member, ticket, more);
            }
            MemberEffect::Interrupt { ticket } => {
                if self.random.chance(0.5) {
                    self.interrupt(member, ticket, more);
                }
            }
        }
    }

    pub(super) fn process(&mut self, member: RankId) -> &mut Process {
        self.processes.get_mut(&member).expect("the process lives")
    }

    /// A frame that the receiver of a session takes although it was repeated.
    pub(super) fn repeated(&self, packet: &Packet<AnyFrame>, at: End) -> Option<AnyFrame> {
        match packet {
            Packet::Frame {
                frame: AnyFrame::ToCallee(frame @ (ToCallee::Call { .. } | ToCallee::Run { .. })),
                ..
            } if at == End::Acceptor && self.plant == Some(ApplicationBug::RepetitionWithoutMemory) => {
                Some(AnyFrame::ToCallee(frame.clone()))
            }
            Packet::Frame { .. } | Packet::Received { .. } => None,
        }
    }

    /// Whether a frame is sent, and not left out by a planted bug.
    fn passes(&mut self, frame: &ToCaller) -> bool {
        match frame {
            ToCaller::Answer { .. }
            | ToCaller::Ran { .. }
            | ToCaller::Kept { .. }
            | ToCaller::Blocked { .. }
            | ToCaller::StillBlocked { .. }
            | ToCaller::Paused
            | ToCaller::Resumed
            | ToCaller::Item { .. } => true,
            ToCaller::Parked { .. } => {
                self.counters.parked += 1;
                self.plant != Some(ApplicationBug::ParkedInWindow)
            }
            ToCaller::Returned { .. } => {
                self.counters.returned += 1;
                self.plant != Some(ApplicationBug::LostReturn)
            }
        }
    }

    /// Decodes handles: some are kept by their new owner.
    pub(super) fn take_handles(
        &mut self,
        member: RankId,
        payload: &[u8],
        owner: HandleOwner,
        more: &mut Vec<MemberEffect>,
    ) {
        for held in decode(payload).1 {
            let keeps = self.phase == ProgramPhase::Work && self.random.chance(0.6);
            if let HeldId::Actor(actor) = held {
                self.ledger.obtained(actor);
            }
            let process = self.process(member);
            if !process.core.hold(held) {
                self.ledger.violated(format!("{member} got a handle of {held} that it does not hold"));
                continue;
            }
            let handles = match owner {
                HandleOwner::Process => Some(&mut process.handles),
                HandleOwner::Task(ticket) => process.tasks.get_mut(&ticket).map(|task| &mut task.handles),
                HandleOwner::Nobody => None,
            };
            match handles.filter(|_| keeps) {
                Some(handles) => handles.push(held),
                None => process.core.release(held, more),
            }
        }
    }

    /// Gives back handles that the core held until they were decoded.
    pub(super) fn give_back(&mut self, member: RankId, carries: Vec<HeldId>, more: &mut Vec<MemberEffect>) {
        let process = self.process(member);
        carries.into_iter().for_each(|held| process.core.release(held, more));
    }

    fn created(&mut self, member: RankId, request: RequestNumber, first: Option<ActorId>) {
        let process = self.process(member);
        let Some(OpenRequest::Create { name, .. }) = process.requests.remove(&request) else { return };
        let Some(first) = first else { return };
        for actor in self.ledger.gang(first) {
            self.process(member).handles.push(HeldId::Actor(actor));
            self.counters.actors += 1;
            self.ledger.obtained(actor);
        }
        if let Some(name) = name {
            let (jobs, head) = (&self.jobs, &self.head);
            let is_over = |it| jobs.get(&it).is_none_or(|job| head.jobs[job].ended.is_some());
            self.ledger.named(&name, first, is_over);
        }
    }

    fn found(
        &mut self,
        member: RankId,
        request: RequestNumber,
        actor: Option<ActorId>,
        more: &mut Vec<MemberEffect>,
    ) {
        let question = self.process(member).requests.remove(&request);
        let Some(actor) = actor else { return };
        self.ledger.obtained(actor);
        self.process(member).handles.push(HeldId::Actor(actor));
        if question == Some(OpenRequest::FindToStop) {
            self.stop_actor(member, actor, more);
        }
    }

    pub(super) fn stop_actor(&mut self, member: RankId, actor: ActorId, more: &mut Vec<MemberEffect>) {
        self.ledger.stopped(actor);
        let process = self.process(member);
        let request = process.core.stop(actor, more);
        process.requests.insert(request, OpenRequest::Stop);
    }

    fn finish(
        &mut self,
        member: RankId,
        call: CallNumber,
        result: &Result<CallValue, CallError>,
        more: &mut Vec<MemberEffect>,
    ) {
        self.call_ended(member, call);
        if self.finish_task(member, call, result, more) {
            return;
        }
        let caller = self.process(member).task_awaits.remove(&call);
        let owner = match (caller, self.process(member).code) {
            (Some(ticket), _) => HandleOwner::Task(ticket),
            (None, ProcessCode::Main | ProcessCode::Actor) => HandleOwner::Process,
            (None, ProcessCode::Tasks | ProcessCode::Store) => HandleOwner::Nobody,
        };
        let payload = self.take_value(member, result, owner, more);
        if let Some(ticket) = caller {
            self.wake_task(member, ticket, call, more);
        }
        self.counters.finished += 1;
        self.counters.values += u64::from(result.is_ok());
        self.counters.restarted += u64::from(*result == Err(CallError::Restarted));
        let process = self.process(member);
        let Some((actor, tag)) = process.calls.remove(&call) else {
            self.ledger.violated(format!("call {call} of {member} ended twice"));
            return;
        };
        let history = self.history(actor);
        let failed = self.may_have_failed(self.ledger.needs(tag));
        self.ledger.finished(tag, &payload, history, failed);
    }

    /// The program of a process goes on if it awaits this call.
    pub(super) fn call_ended(&mut self, member: RankId, call: CallNumber) {
        if self.process(member).awaits == Some(call) {
            self.process(member).awaits = None;
            self.step_soon(member);
        }
    }

    /// Decodes the value of a call, after it was read from the store if it lies there.
    pub(super) fn take_value(
        &mut self,
        member: RankId,
        result: &Result<CallValue, CallError>,
        owner: HandleOwner,
        more: &mut Vec<MemberEffect>,
    ) -> Result<bytes::Bytes, CallError> {
        let payload = self.payload_of(result);
        match result {
            Ok(CallValue::Inline(payload)) => self.take_handles(member, payload, owner, more),
            Ok(CallValue::Stored(stored)) => {
                let payload = payload.clone().unwrap_or_default();
                self.read_stored(member, (stored.object, *stored), payload, owner, more);
            }
            Err(_) => {}
        }
        payload
    }

    fn construct(&mut self, member: RankId, live: LiveActor, more: &mut Vec<MemberEffect>) {
        let other = |(other, it): &(&RankId, &Process)| {
            **other != member && it.live.is_some_and(|it| it.actor == live.actor)
        };
        if let Some((other, _)) = self.processes.iter().find(other) {
            let actor = live.actor;
            self.ledger.violated(format!("actor {actor} lives in {other} and is constructed in {member}"));
        }
        let before = |(other, it): &(&RankId, &Process)| {
            other.attempt.job == member.job() && other.attempt < member.attempt && it.live.is_some()
        };
        if let Some((other, _)) = self.processes.iter().find(before) {
            self.ledger.violated(format!("{member} constructs its actor while {other} lives"));
        }
        let process = self.process(member);
        if !process.running.is_empty() {
            let running = process.running.len();
            self.ledger.violated(format!("{member} constructs its actor while {running} calls run"));
        }
        let process = self.process(member);
        process.live = Some(live);
        for held in std::mem::take(&mut process.handles) {
            process.core.release(held, more);
        }
        self.counters.constructions += 1;
        let IncarnationNumber(incarnation) = live.incarnation;
        self.method_ends_soon(ApplicationEvent::ConstructorEnd { member, incarnation });
    }

    pub(super) fn end_constructor(&mut self, member: RankId, incarnation: u32) {
        let Some(live) = self.processes.get(&member).and_then(|it| it.live) else { return };
        if live.incarnation != IncarnationNumber(incarnation) {
            return;
        }
        let fails = self.phase == ProgramPhase::Work && self.random.chance(0.02);
        if fails {
            self.process(member).exit_code = 1;
            self.ledger.constructor_failed(live.actor);
        } else {
            self.step_soon(member);
        }
        let result = if fails { Err("no such file".to_owned()) } else { Ok(()) };
        self.drive(member, |it, effects| it.core.constructed(result, effects));
    }

    fn start_method(&mut self, member: RankId, ticket: Ticket, tag: Tag) {
        let process = self.process(member);
        let running: Vec<Tag> = process.running.values().copied().collect();
        let concurrency = process.live.map_or(0, |live| live.concurrency);
        self.ledger.started(tag, member, &running, concurrency);
        self.process(member).running.insert(ticket, tag);
        self.counters.starts += 1;
        self.method_ends_soon(ApplicationEvent::MethodEnd { member, ticket });
    }

    fn interrupt(&mut self, member: RankId, ticket: Ticket, more: &mut Vec<MemberEffect>) {
        let process = self.process(member);
        if let Some(tag) = process.running.remove(&ticket) {
            process.core.finished(ticket, Err(CallError::Cancelled), Vec::new(), more);
            self.ledger.outcome(tag, Err(CallError::Cancelled));
        }
    }

    pub(super) fn end_method(&mut self, member: RankId, ticket: Ticket) {
        let Some(process) = self.processes.get_mut(&member) else { return };
        let Some(tag) = process.running.get(&ticket).copied() else { return };
        let kind = self.random.fraction();
        if kind < 0.03 {
            process.running.remove(&ticket);
            let text = format!("panic {}", tag.0);
            self.ledger.outcome(tag, Err(CallError::Panicked(text.clone())));
            self.drive(member, |it, effects| it.core.panicked(ticket, text, effects));
            return;
        }
        let carries = if kind < 0.08 { Vec::new() } else { self.some_handles(member) };
        let carries = self.known_among(member, carries);
        self.last_tag += 1;
        let result = match kind {
            ..0.08 => Err(CallError::Failed(format!("error {}", tag.0))),
            _ => Ok(encode(Tag(self.last_tag), &carries)),
        };
        let mut effects = Vec::new();
        match result {
            Ok(payload) if self.random.chance(0.15) => {
                self.begin_store(member, payload, carries, StorePurpose::Method(ticket));
            }
            result => {
                let result = result.map(CallValue::Inline);
                self.method_returns(member, ticket, result, carries, &mut effects);
            }
        }
        self.drive(member, |_, all| all.append(&mut effects));
        if self.random.chance(0.1) {
            self.make_call(member);
        }
        if self.random.chance(0.05) {
            self.call_tree(member);
        }
    }

    /// A running method ends, unless it was interrupted.
    pub(super) fn method_returns(
        &mut self,
        member: RankId,
        ticket: Ticket,
        result: Result<CallValue, CallError>,
        carries: Vec<HeldId>,
        more: &mut Vec<MemberEffect>,
    ) {
        let payload = self.payload_of(&result);
        let process = self.process(member);
        if let Some(tag) = process.running.remove(&ticket) {
            process.core.finished(ticket, result, carries, more);
            self.ledger.outcome(tag, payload);
        }
    }

    /// Whether users' code of this process may do something now.
    pub(super) fn runs_code(&self, member: RankId) -> bool {
        self.processes.get(&member).is_some_and(|it| match it.code {
            ProcessCode::Main => true,
            ProcessCode::Actor => it.live.is_some(),
            ProcessCode::Tasks | ProcessCode::Store => false,
        })
    }
}
