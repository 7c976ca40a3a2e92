//! What users' code does: it creates actors, calls them, and passes handles on.

use cohabit_application_core::{
    ActorId, ActorSpec, CallRequest, Lifetime, MemberEffect, MethodAccess, OnRestart, Ticket,
};
use cohabit_types::{AttemptId, Share};

use super::ledger::CallRecord;
use super::payload::{Tag, encode};
use super::process::{OpenRequest, ProcessCode};
use super::world::{ApplicationWorld, ProgramPhase};

const NAMES: [&str; 3] = ["ada", "grace", "alan"];

impl ApplicationWorld {
    /// A process does the next step of its program.
    pub(super) fn step(&mut self, member: AttemptId) {
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
            ..0.18 => self.create_actor(member),
            ..0.22 => self.find_actor(member),
            ..0.46 => self.make_calls(member),
            ..0.60 => self.call_tasks(member),
            ..0.65 => self.cancel_call(member),
            ..0.68 => self.cancel_some_task(member),
            ..0.85 => self.drop_handle(member),
            ..0.93 => self.clone_handle(member),
            ..0.95 => self.stop_some_actor(member),
            _ => {}
        }
        self.step_soon(member);
    }

    /// Up to two handles of a process, mostly none.
    pub(super) fn some_handles(&mut self, member: AttemptId) -> Vec<ActorId> {
        let count = if self.random.chance(0.4) { self.random.between(1, 2) } else { 0 };
        (0..count).filter_map(|_| self.some_handle(member)).collect()
    }

    fn some_handle(&mut self, member: AttemptId) -> Option<ActorId> {
        let handles = &self.processes.get(&member)?.handles;
        (!handles.is_empty()).then(|| *self.random.pick(handles))
    }

    fn create_actor(&mut self, member: AttemptId) {
        let carries = self.some_handles(member);
        let name = self.random.chance(0.3).then(|| (*self.random.pick(&NAMES)).to_owned());
        let detached = name.is_some() && self.random.chance(0.3);
        let concurrency = self.random.between(1, 4) as u32;
        self.last_tag += 1;
        let spec = ActorSpec {
            kind: concurrency,
            name: name.clone(),
            lifetime: if detached { Lifetime::Detached } else { Lifetime::Held },
            restarts: self.random.between(0, 3) as u32,
            concurrency,
            gpus: Share(if self.random.chance(0.6) { 250 * self.random.between(1, 4) as u32 } else { 0 }),
            claims: bytes::Bytes::new(),
            arguments: encode(Tag(self.last_tag), &carries),
            carries: carries.clone(),
        };
        self.drive(member, |it, effects| {
            if let Ok(request) = it.core.create(spec, effects) {
                it.requests.insert(request, OpenRequest::Create { carries, name });
            }
        });
    }

    fn find_actor(&mut self, member: AttemptId) {
        let name = (*self.random.pick(&NAMES)).to_owned();
        self.find(member, name, OpenRequest::Find);
    }

    fn find(&mut self, member: AttemptId, name: String, question: OpenRequest) {
        self.drive(member, |it, effects| {
            if let Ok(request) = it.core.find(name, effects) {
                it.requests.insert(request, question);
            }
        });
    }

    fn make_calls(&mut self, member: AttemptId) {
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
    pub(super) fn make_call(&mut self, member: AttemptId) {
        if let Some(actor) = self.some_handle(member).filter(|_| self.phase == ProgramPhase::Work) {
            self.call_actor(member, actor, None);
        }
    }

    /// Calls an actor; a task that does so waits for the answer.
    pub(super) fn call_actor(&mut self, member: AttemptId, actor: ActorId, caller: Option<Ticket>) {
        let carries = self.some_handles(member);
        self.last_tag += 1;
        let tag = Tag(self.last_tag);
        let access = if self.random.chance(0.5) { MethodAccess::Shared } else { MethodAccess::Exclusive };
        let on_restart = if self.random.chance(0.4) { OnRestart::Retry } else { OnRestart::Fail };
        let arguments = encode(tag, &carries);
        let request = CallRequest { method: 0, access, on_restart, arguments, carries };
        // The call may end, and the process too, before the effects are carried out.
        let mut effects = Vec::new();
        let process = self.process(member);
        if let Ok(call) = process.core.call(actor, request, &mut effects) {
            process.calls.insert(call, (actor, tag));
            if let Some(ticket) = caller
                && let Some(task) = process.tasks.get_mut(&ticket)
            {
                task.open.insert(call);
                process.task_awaits.insert(call, ticket);
            }
            self.counters.calls += 1;
            self.ledger.called(tag, CallRecord::new(member, (actor, call), access, on_restart));
        }
        self.drive(member, |_, all| all.append(&mut effects));
    }

    fn cancel_call(&mut self, member: AttemptId) {
        let calls: Vec<_> = self.process(member).calls.iter().map(|(call, it)| (*call, *it)).collect();
        if calls.is_empty() {
            return;
        }
        let (call, (actor, tag)) = *self.random.pick(&calls);
        self.ledger.cancelled(tag);
        self.drive(member, |it, effects| it.core.cancel(actor, call, effects));
    }

    fn drop_handle(&mut self, member: AttemptId) {
        let handles = self.process(member).handles.len() as u64;
        if handles > 0 {
            let which = self.random.between(0, handles - 1) as usize;
            self.drive(member, |it, effects| {
                let actor = it.handles.swap_remove(which);
                it.core.release(actor, effects);
            });
        }
    }

    fn clone_handle(&mut self, member: AttemptId) {
        if let Some(actor) = self.some_handle(member) {
            let process = self.process(member);
            if process.core.hold(actor) {
                process.handles.push(actor);
            } else {
                self.ledger.violated(format!("{member} has a handle of actor {actor} that it does not hold"));
            }
        }
    }

    fn stop_some_actor(&mut self, member: AttemptId) {
        if let Some(actor) = self.some_handle(member) {
            let mut effects = Vec::new();
            self.stop_actor(member, actor, &mut effects);
            self.drive(member, |_, all| all.append(&mut effects));
        }
    }

    /// All processes give back what they have; `stopper` stops the actors with names.
    pub(super) fn wind_down(&mut self, stopper: AttemptId) {
        self.phase = ProgramPhase::WindDown;
        let members: Vec<AttemptId> = self.processes.keys().copied().collect();
        for member in members {
            self.process(member).awaits = None;
            if self.process(member).code == ProcessCode::Tasks {
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
                for actor in std::mem::take(&mut it.handles) {
                    it.core.release(actor, effects);
                }
            });
        }
        for name in NAMES {
            self.find(stopper, name.to_owned(), OpenRequest::FindToStop);
        }
    }

    /// The process that stops actors at the end drops their handles.
    pub(super) fn drop_all_handles(&mut self, member: AttemptId) {
        self.drive(member, |it, effects| {
            for actor in std::mem::take(&mut it.handles) {
                it.core.release(actor, effects);
            }
        });
    }
}
