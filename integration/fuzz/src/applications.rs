//! What the processes of an application may say to each other, in any order. A broken one may spoil its own
//! application; it makes no other process panic, and takes no memory beyond what it sent.

use cohabit_application_core::{
    ActorId, CallError, CallNumber, CallRequest, CallValue, Coordinator, CoordinatorEffect, CoordinatorNode,
    FromCoordinator, FromStore, HeldId, Member, MemberEffect, MethodAccess, NodeNumber, ObjectId, OnRestart,
    OnTaskError, RunnerReport, RunnerState, TaskClass, TaskSpec, ToCallee, ToCaller, ToCoordinator,
};
use cohabit_net::fuzzing::decode;
use cohabit_types::{JobId, RankId, Rendezvous, Share, Span};
use serde::{Deserialize, Serialize};

use crate::stores::{FuzzedStore, StoreAction};

/// What happens in an application, besides what its cores do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum MemberAction {
    /// A process connects to the coordinator, from this node.
    Connects(u8, u8),
    /// Nothing was heard of a process for some time.
    Silent(u8),
    /// The store in the coordinator's process says something.
    OwnStoreSays(FromStore),
    /// The head refuses the store of a node.
    RefusesStore(u8),
    /// The store in the member's process says something.
    StoreSays(FromStore),
    /// It says something to the coordinator.
    Tells(u8, ToCoordinator),
    /// The head says of its job how many attempts have ended.
    Reported(u8, u8),
    /// The head says that its job has ended.
    Over(u8),
    /// A process hears from the coordinator.
    Hears(FromCoordinator),
    /// A caller says something to it.
    Called(u8, ToCallee),
    /// A process that it calls says something to it.
    Answered(u8, ToCaller),
    /// It calls an actor.
    Calls(u64),
    /// It calls a function, with so many retries.
    Runs(u8),
    /// It needs the value of a call no longer.
    Cancels(u64),
    /// It calls a function for a reference, which needs the values of all references that it holds.
    RunsForReference(u8),
    /// It makes an object of a small value with all of its references in it, or stores a large one.
    Makes(bool),
    /// It asks for the handles in an object, and looks at its value.
    Opens(ObjectId),
    /// The time of one of its references is over.
    Fails(u8),
    /// It drops one of its references.
    Drops(u8),
    /// Something happens to the objects of a node.
    Stores(StoreAction),
}

/// Actions, as messages carry them: what effects ask for happens at once.
pub(crate) fn actions(bytes: &[u8]) {
    let Some(actions) = decode::<Vec<MemberAction>>(bytes) else { return };
    let own = JobId::new(1).attempt(1).rank(0);
    let at = Some(Rendezvous { address: "n0".into(), port: 29_600 });
    let node = CoordinatorNode { name: "n0".into(), at };
    let mut world = World {
        coordinator: Coordinator::new(own, node, Some(Share(2_000)), None),
        member: Member::new(process(0), own),
        store: FuzzedStore::new(),
        jobs: MOST_PROCESSES,
        unended: 0,
        references: Vec::new(),
    };
    world.drive_coordinator(|it, effects| it.main(process(0).job(), effects));
    for action in actions.into_iter().take(MAX_ACTIONS) {
        world.take(action);
    }
}

/// More would only be slow.
const MAX_ACTIONS: usize = 64;
/// Processes that say something.
const MOST_PROCESSES: u64 = 8;

struct World {
    coordinator: Coordinator,
    member: Member,
    store: FuzzedStore,
    /// The number of the last job.
    jobs: u64,
    /// Calls of the member that have not ended.
    unended: i64,
    /// What the member holds.
    references: Vec<ObjectId>,
}

fn task(retries: u8) -> TaskSpec {
    TaskSpec {
        class: TaskClass { gpus: Share(u32::from(retries % 3) * 500), claims: Default::default() },
        function: 0,
        caller: None,
        retries: retries.into(),
        on_error: OnTaskError::Retry,
        arguments: Default::default(),
        needs: Vec::new(),
        carries: Vec::new(),
    }
}

const fn process(number: u8) -> RankId {
    JobId::new(2 + number as u64 % MOST_PROCESSES).attempt(1 + (number as u32 / 64)).rank(0)
}

impl World {
    fn take(&mut self, action: MemberAction) {
        match action {
            MemberAction::Connects(number, node) => {
                let node = format!("n{}", node % 4);
                self.drive_coordinator(|it, effects| it.connected(process(number), &node, effects));
            }
            MemberAction::Silent(number) => {
                self.drive_coordinator(|it, effects| it.member_silent(process(number), effects));
            }
            MemberAction::OwnStoreSays(frame) => {
                self.drive_coordinator(|it, effects| it.received_from_own_store(frame, effects));
            }
            MemberAction::RefusesStore(node) => {
                let result = Err("no such node".into());
                let node = NodeNumber(node.into());
                self.drive_coordinator(|it, effects| it.store_submitted(node, result, effects));
            }
            MemberAction::StoreSays(frame) => {
                self.drive_member(|it, effects| it.from_store(frame, effects));
            }
            MemberAction::Stores(action) => self.store.take(action),
            MemberAction::Tells(number, frame) => {
                self.drive_coordinator(|it, effects| it.received(process(number), frame, effects));
            }
            MemberAction::Reported(number, ended) => {
                let report = RunnerReport { ended_attempts: ended.into(), state: RunnerState::Live };
                self.drive_coordinator(|it, effects| it.report(process(number).job(), report, effects));
            }
            MemberAction::Over(number) => {
                let state = RunnerState::Ended { code: 1, text: "it failed".into() };
                let report = RunnerReport { ended_attempts: process(number).attempt.attempt, state };
                self.drive_coordinator(|it, effects| it.report(process(number).job(), report, effects));
            }
            MemberAction::Hears(frame) => self.drive_member(|it, effects| it.receive(frame, effects)),
            MemberAction::Called(number, frame) => {
                self.drive_member(|it, effects| it.receive_from_caller(process(number), frame, effects));
            }
            MemberAction::Answered(number, frame) => {
                self.drive_member(|it, effects| it.receive_from_callee(process(number), frame, effects));
            }
            MemberAction::Calls(actor) => self.call(ActorId(actor)),
            MemberAction::Runs(retries) => self.run_task(retries),
            MemberAction::Cancels(call) => {
                self.drive_member(|it, effects| {
                    it.cancel(ActorId(call % 4), CallNumber(call), effects);
                    it.cancel_task(CallNumber(call), effects);
                });
            }
            MemberAction::RunsForReference(retries) => self.run_for_reference(retries),
            MemberAction::Makes(is_large) => self.make(is_large),
            MemberAction::Opens(object) => self.drive_member(|it, effects| {
                it.open_object(object, effects);
                let _value = it.object_value(object);
            }),
            MemberAction::Fails(which) => {
                if let Some(object) = self.some_reference(which) {
                    let error = CallError::TimedOut(Span::from_micros(1));
                    self.drive_member(|it, effects| it.fail_reference(object, error, effects));
                }
            }
            MemberAction::Drops(which) => {
                if let Some(object) = self.some_reference(which) {
                    self.references.retain(|it| *it != object);
                    self.drive_member(|it, effects| it.release(HeldId::Object(object), effects));
                }
            }
        }
    }

    fn some_reference(&self, which: u8) -> Option<ObjectId> {
        self.references.get(usize::from(which).checked_rem(self.references.len())?).copied()
    }

    fn held(&self) -> Vec<HeldId> {
        self.references.iter().copied().map(HeldId::Object).collect()
    }

    fn run_for_reference(&mut self, retries: u8) {
        let task = TaskSpec { needs: self.references.clone(), carries: self.held(), ..task(retries) };
        let made = self.drive_member(|it, effects| it.run_task_for_reference(task, effects));
        if let Ok((_, object)) = made {
            self.unended += 1;
            self.references.push(object);
        }
    }

    fn make(&mut self, is_large: bool) {
        let carries = self.held();
        let object = self.drive_member(|it, effects| match is_large {
            true => {
                let object = it.new_object();
                it.stored(object, 1 << 20, &carries, effects);
                object
            }
            false => it.keep_inline(Default::default(), carries, effects),
        });
        self.references.push(object);
    }

    fn call(&mut self, actor: ActorId) {
        let request = CallRequest {
            method: 0,
            access: MethodAccess::Shared,
            on_restart: OnRestart::Retry,
            arguments: Default::default(),
            needs: self.references.clone(),
        };
        let carries = self.held();
        let made = self.drive_member(|it, effects| it.call(actor, request, carries, effects));
        self.unended += i64::from(made.is_ok());
    }

    fn run_task(&mut self, retries: u8) {
        let made = self.drive_member(|it, effects| it.run_task(task(retries), effects));
        self.unended += i64::from(made.is_ok());
    }

    /// The head takes every job.
    fn drive_coordinator(&mut self, change: impl FnOnce(&mut Coordinator, &mut Vec<CoordinatorEffect>)) {
        let mut effects = Vec::new();
        change(&mut self.coordinator, &mut effects);
        while let Some(effect) = effects.pop() {
            match effect {
                CoordinatorEffect::Submit { first, .. } => {
                    self.jobs += 1;
                    self.coordinator.submitted(first, Ok(JobId::new(self.jobs)), &mut effects);
                }
                CoordinatorEffect::SubmitTaskRunner { runner, .. } => {
                    self.jobs += 1;
                    let job = JobId::new(self.jobs);
                    self.coordinator.task_runner_submitted(runner, Ok(job), &mut effects);
                }
                CoordinatorEffect::AwaitClosing { closing } => {
                    self.coordinator.closing_over(closing, &mut effects);
                }
                CoordinatorEffect::AwaitSurplus { class } => {
                    self.coordinator.surplus_over(&class, &mut effects);
                }
                CoordinatorEffect::AwaitEnd { job } => self.coordinator.patience_over(job, &mut effects),
                CoordinatorEffect::AwaitStore { node, restarts } => {
                    self.coordinator.store_overdue(node, restarts, &mut effects);
                }
                CoordinatorEffect::AwaitYield => self.coordinator.yield_due(&mut effects),
                CoordinatorEffect::SubmitStore { node, .. } => {
                    self.jobs += 1;
                    self.coordinator.store_submitted(node, Ok(JobId::new(self.jobs)), &mut effects);
                }
                CoordinatorEffect::Send { .. }
                | CoordinatorEffect::Described { .. }
                | CoordinatorEffect::OwnStore(_)
                | CoordinatorEffect::StoreTold { .. }
                | CoordinatorEffect::CancelRunner { .. }
                | CoordinatorEffect::Close { .. }
                | CoordinatorEffect::Exit { .. } => {}
            }
        }
    }

    /// Methods and tasks end as soon as they begin.
    fn drive_member<R>(&mut self, change: impl FnOnce(&mut Member, &mut Vec<MemberEffect>) -> R) -> R {
        let mut effects = Vec::new();
        let result = change(&mut self.member, &mut effects);
        while let Some(effect) = effects.pop() {
            match effect {
                MemberEffect::Construct { .. } => self.member.constructed(Ok(()), &mut effects),
                MemberEffect::Start { ticket, carries, .. } => {
                    carries.into_iter().for_each(|held| self.member.release(held, &mut effects));
                    self.member.finished(ticket, Err(CallError::Cancelled), Vec::new(), &mut effects);
                }
                MemberEffect::StartTask { ticket, carries, .. } => {
                    carries.into_iter().for_each(|held| self.member.release(held, &mut effects));
                    let result = match self.member.store_as(ticket) {
                        Some(object) => {
                            let stored = self.member.stored(object, 1 << 20, &[], &mut effects);
                            self.member.release(HeldId::Object(object), &mut effects);
                            Ok(CallValue::Stored(stored))
                        }
                        None => Err(CallError::Failed("no".into())),
                    };
                    let took = Span::from_micros(7);
                    self.member.task_ended(ticket, result, Vec::new(), took, &mut effects);
                }
                MemberEffect::Finish { carries, .. } => {
                    self.unended -= 1;
                    assert!(self.unended >= 0, "a call ended twice");
                    carries.into_iter().for_each(|held| self.member.release(held, &mut effects));
                }
                MemberEffect::Item { call, carries, .. } => {
                    carries.into_iter().for_each(|held| self.member.release(held, &mut effects));
                    self.member.read(call, &mut effects);
                }
                MemberEffect::Created { result: Ok(actor), .. }
                | MemberEffect::Found { actor: Some(actor), .. } => {
                    self.member.release(HeldId::Actor(actor), &mut effects);
                }
                MemberEffect::ObjectReady { call, object: _ } => {
                    self.unended -= i64::from(call.is_some());
                    assert!(self.unended >= 0, "a call with a reference ended twice");
                }
                MemberEffect::Opened { carries, .. } => {
                    carries.into_iter().for_each(|held| self.member.release(held, &mut effects));
                }
                MemberEffect::Created { .. }
                | MemberEffect::Found { .. }
                | MemberEffect::Stopped { .. }
                | MemberEffect::ToCoordinator(_)
                | MemberEffect::ToCallee { .. }
                | MemberEffect::ToCaller { .. }
                | MemberEffect::Close { .. }
                | MemberEffect::Interrupt { .. }
                | MemberEffect::Rest { .. }
                | MemberEffect::MakeMore { .. }
                | MemberEffect::Store(_)
                | MemberEffect::End
                | MemberEffect::Fail => {}
            }
        }
        result
    }
}
