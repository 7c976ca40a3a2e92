//! What users' code does: it creates actors, calls them, and passes handles on.

use cohabit_application_core::{
    ActorId, ActorSpec, CallError, CallNumber, CallRequest, GangSpec, HeldId, Lifetime, MemberEffect,
    MethodAccess, ObjectId, OnRestart, Ticket,
};
use cohabit_types::{RankId, Share};

use super::ledger::CallRecord;
use super::payload::{Tag, encode};
use super::process::{OpenRequest, ProcessCode};
use super::world::{ApplicationWorld, ProgramPhase};

const NAMES: [&str; 3] = ["ada", "grace", "alan"];

impl ApplicationWorld {
    /// A process does the next step of its program.
    pub(super) fn step(&mut self, member: RankId) {
        if self.phase == ProgramPhase::WindDown || !self.runs_code(member) {
            return;
        }
        let process = self.process(member);
        if process.awaits.is_some() {
            return;
        }
        if process.steps == 0 {
            if process.code == ProcessCode::Main && self.random.chance(0.7) {
                let code = self.random.between(0, 2) as i32;
                self.kill(member, code);
            }
            return;
        }
        process.steps -= 1;
        match self.random.fraction() {
            ..0.16 => self.create_actor(member),
            ..0.19 => self.find_actor(member),
            ..0.40 => self.make_calls(member),
            ..0.53 => self.call_tasks(member),
            ..0.60 => self.put_object(member),
            ..0.65 => self.read_some_object(member),
            ..0.66 => self.fail_some_reference(member),
            ..0.70 => self.cancel_call(member),
            ..0.72 => self.cancel_some_task(member),
            ..0.87 => self.drop_handle(member),
            ..0.94 => self.clone_handle(member),
            ..0.955 => self.stop_some_actor(member),
            _ => {}
        }
        self.step_soon(member);
    }

    /// Up to two handles of a process, mostly none.
    pub(super) fn some_handles(&mut self, member: RankId) -> Vec<HeldId> {
        let count = if self.random.chance(0.4) { self.random.between(1, 2) } else { 0 };
        (0..count).filter_map(|_| self.some_handle(member)).collect()
    }

    fn some_handle(&mut self, member: RankId) -> Option<HeldId> {
        let handles = &self.processes.get(&member)?.handles;
        (!handles.is_empty()).then(|| *self.random.pick(handles))
    }

    fn some_actor(&mut self, member: RankId) -> Option<ActorId> {
        let actors = actors_among(&self.processes.get(&member)?.handles);
        (!actors.is_empty()).then(|| *self.random.pick(&actors))
    }

    /// Some of the references among handles: code needs their values.
    pub(super) fn some_needs(&mut self, handles: &[HeldId]) -> Vec<ObjectId> {
        let objects = handles.iter().filter_map(|held| held.object());
        objects.filter(|_| self.random.chance(0.5)).collect()
    }

    fn create_actor(&mut self, member: RankId) {
        let carries = self.some_handles(member);
        let name = self.random.chance(0.3).then(|| (*self.random.pick(&NAMES)).to_owned());
        let detached = name.is_some() && self.random.chance(0.3);
        let concurrency = self.random.between(1, 4) as u32;
        self.last_tag += 1;
        let restarts = self.random.between(0, 3) as u32;
        let gpus = Share(if self.random.chance(0.6) && self.actors_have_gpus {
            250 * self.random.between(1, 4) as u32
        } else {
            0
        });
        let first = ActorSpec {
            kind: concurrency,
            name: name.clone(),
            concurrency,
            arguments: encode(Tag(self.last_tag), &carries),
            needs: self.some_needs(&carries),
        };
        let size = if detached { 1 } else { self.gang_sizes.draw() };
        let other = ActorSpec { name: None, ..first.clone() };
        let gang = GangSpec {
            lifetime: if detached { Lifetime::Detached } else { Lifetime::Held },
            restarts,
            gpus,
            claims: bytes::Bytes::new(),
            actors: std::iter::once(first).chain(vec![other; size - 1]).collect(),
        };
        self.drive(member, |it, effects| {
            if let Ok(request) = it.core.create(gang, vec![carries.clone(); size], effects) {
                it.requests.insert(request, OpenRequest::Create { carries, name });
            }
        });
    }

    fn find_actor(&mut self, member: RankId) {
        let name = (*self.random.pick(&NAMES)).to_owned();
        self.find(member, name, OpenRequest::Find);
    }

    fn find(&mut self, member: RankId, name: String, question: OpenRequest) {
        self.drive(member, |it, effects| {
            if let Ok(request) = it.core.find(name, effects) {
                it.requests.insert(request, question);
            }
        });
    }

    fn make_calls(&mut self, member: RankId) {
        let count = if self.random.chance(0.3) { self.random.between(2, 20) } else { 1 };
        for _ in 0..count {
            self.make_call(member);
        }
        if let Some(process) = self.processes.get_mut(&member)
            && self.random.chance(0.4)
        {
            process.awaits = process.calls.last_key_value().map(|(call, _)| *call);
        }
    }

    /// Makes one call to one of the actors that the process holds.
    pub(super) fn make_call(&mut self, member: RankId) {
        if let Some(actor) = self.some_actor(member).filter(|_| self.phase == ProgramPhase::Work) {
            self.call_actor(member, actor, None);
        }
    }

    /// Calls an actor; a task that does so waits for the answer.
    pub(super) fn call_actor(&mut self, member: RankId, actor: ActorId, caller: Option<Ticket>) {
        let carries = self.some_handles(member);
        self.last_tag += 1;
        let tag = Tag(self.last_tag);
        let access = if self.random.chance(0.5) { MethodAccess::Shared } else { MethodAccess::Exclusive };
        let on_restart = if self.random.chance(0.4) { OnRestart::Retry } else { OnRestart::Fail };
        let arguments = encode(tag, &carries);
        let needs = self.some_needs(&carries);
        let request = CallRequest { method: 0, access, on_restart, arguments, needs: needs.clone() };
        let by_reference = caller.is_none() && self.random.chance(0.3);
        // The call may end, and the process too, before the effects are carried out.
        let mut effects = Vec::new();
        let process = self.process(member);
        let called = if by_reference {
            let called = process.core.call_for_reference(actor, request, carries, &mut effects);
            called.map(|(call, object)| (call, Some(object)))
        } else {
            process.core.call(actor, request, carries, &mut effects).map(|call| (call, None))
        };
        if matches!(called, Err(CallError::Dependency(_))) && !self.may_have_failed(&needs) {
            self.ledger.violated(format!("{member} may not call with {needs:?}, none of which failed"));
        }
        if let Ok((call, object)) = called {
            if let Some(object) = object {
                self.objects.called(object, None);
                self.keep_reference(member, call, object);
            }
            let process = self.process(member);
            process.calls.insert(call, (actor, tag));
            if let Some(ticket) = caller
                && let Some(task) = process.tasks.get_mut(&ticket)
            {
                task.open.insert(call);
                process.task_awaits.insert(call, ticket);
            }
            self.counters.calls += 1;
            self.ledger.called(tag, CallRecord::new(member, (actor, call), access, on_restart, needs));
        }
        self.drive(member, |_, all| all.append(&mut effects));
    }

    fn cancel_call(&mut self, member: RankId) {
        let calls: Vec<_> = self.process(member).calls.iter().map(|(call, it)| (*call, *it)).collect();
        if calls.is_empty() {
            return;
        }
        let (call, (actor, tag)) = *self.random.pick(&calls);
        self.ledger.cancelled(tag);
        self.drive(member, |it, effects| it.core.cancel(actor, call, effects));
    }

    fn drop_handle(&mut self, member: RankId) {
        let handles = self.process(member).handles.len() as u64;
        if handles > 0 {
            let which = self.random.between(0, handles - 1) as usize;
            self.drive(member, |it, effects| {
                let held = it.handles.swap_remove(which);
                it.core.release(held, effects);
            });
        }
    }

    fn clone_handle(&mut self, member: RankId) {
        if let Some(held) = self.some_handle(member) {
            let process = self.process(member);
            if process.core.hold(held) {
                process.handles.push(held);
            } else {
                self.ledger.violated(format!("{member} has a handle of {held} that it does not hold"));
            }
        }
    }

    fn stop_some_actor(&mut self, member: RankId) {
        if let Some(actor) = self.some_actor(member) {
            let mut effects = Vec::new();
            self.stop_actor(member, actor, &mut effects);
            self.drive(member, |_, all| all.append(&mut effects));
        }
    }

    /// All processes give back what they have; `stopper` stops the actors with names.
    pub(super) fn wind_down(&mut self, stopper: RankId) {
        self.phase = ProgramPhase::WindDown;
        let members: Vec<RankId> = self.processes.keys().copied().collect();
        for member in members {
            self.process(member).awaits = None;
            if matches!(self.process(member).code, ProcessCode::Tasks | ProcessCode::Store) {
                continue;
            }
            let calls: Vec<_> = self.process(member).calls.values().map(|(_, tag)| *tag).collect();
            calls.into_iter().for_each(|tag| self.ledger.cancelled(tag));
            let tasks: Vec<_> = self.process(member).task_calls.values().map(|it| it.tag).collect();
            tasks.into_iter().for_each(|tag| self.task_ledger.cancelled(tag));
            let mut dropped = Vec::new();
            for call in self.process(member).streams.keys().copied().collect::<Vec<_>>() {
                self.drop_stream(member, call, &mut dropped);
            }
            self.drive(member, |it, effects: &mut Vec<MemberEffect>| {
                effects.append(&mut dropped);
                for call in it.task_calls.keys().copied().collect::<Vec<_>>() {
                    it.core.cancel_task(call, effects);
                }
                for (call, (actor, _)) in it.calls.clone() {
                    it.core.cancel(actor, call, effects);
                }
                for held in std::mem::take(&mut it.handles) {
                    it.core.release(held, effects);
                }
            });
        }
        for name in NAMES {
            self.find(stopper, name.to_owned(), OpenRequest::FindToStop);
        }
    }

    /// The process that stops actors at the end drops their handles.
    pub(super) fn drop_all_handles(&mut self, member: RankId) {
        self.drive(member, |it, effects| {
            for held in std::mem::take(&mut it.handles) {
                it.core.release(held, effects);
            }
        });
    }

    /// A process keeps the reference of a call.
    pub(super) fn keep_reference(&mut self, member: RankId, call: CallNumber, object: ObjectId) {
        let process = self.process(member);
        process.references.insert(call, object);
        process.handles.push(HeldId::Object(object));
    }
}

/// The actors that handles stand for.
pub(super) fn actors_among(handles: &[HeldId]) -> Vec<ActorId> {
    let actor = |held: &HeldId| match held {
        HeldId::Actor(actor) => Some(*actor),
        HeldId::Object(_) => None,
    };
    handles.iter().filter_map(actor).collect()
}
