//! Any program of three processes, whose frames arrive in any order that their sessions allow: each reference
//! becomes its right value, nothing is freed that somebody holds, and nothing is left when all is dropped.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use cohabit_types::{RankId, Span};
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::kit::{ROOT, class, effects, member, root_node, task};
use crate::{
    CallError, CallNumber, CallValue, Coordinator, CoordinatorEffect, FromCoordinator, HeldId, Member,
    MemberEffect, ObjectId, ObjectValue, RequestNumber, RunnerReport, RunnerState, StoredObject, TaskSpec,
    Ticket, ToCallee, ToCaller, ToCoordinator, ToStore,
};

/// The one that may end.
const MORTAL: RankId = member(4);
const MEMBERS: [RankId; 3] = [member(2), member(3), MORTAL];
/// Two values of this size do not travel with one frame.
const LARGE: usize = 600 << 10;

/// A value: its tag says which it is, and these are the references in it.
fn encode(tag: u64, references: &[ObjectId]) -> Bytes {
    let mut bytes = bincode::serialize(&(tag, references)).unwrap();
    bytes.resize(bytes.len() + if tag.is_multiple_of(5) { LARGE } else { 0 }, 0);
    Bytes::from(bytes)
}

fn decode(bytes: &Bytes) -> (u64, Vec<ObjectId>) {
    bincode::deserialize(bytes).unwrap()
}

/// The function of a task with such a tag returns an error.
const fn fails(tag: u64) -> bool {
    tag.is_multiple_of(11)
}

/// A task that has started.
struct Running {
    ticket: Ticket,
    tag: u64,
    references: Vec<ObjectId>,
    needs: Vec<ObjectId>,
    carries: Vec<HeldId>,
    interrupted: bool,
}

/// A member with its shell.
struct Process {
    core: Member,
    /// The references that its code holds.
    variables: Vec<ObjectId>,
    running: Vec<Running>,
    /// References that were not known when somebody looked, and of which nothing was said since.
    awaited: BTreeSet<ObjectId>,
    /// Stored objects whose handles it has asked for.
    opens: BTreeMap<RequestNumber, ObjectId>,
}

struct World {
    coordinator: Coordinator,
    processes: BTreeMap<RankId, Process>,
    to_coordinator: BTreeMap<RankId, VecDeque<ToCoordinator>>,
    from_coordinator: BTreeMap<RankId, VecDeque<FromCoordinator>>,
    /// By caller and callee.
    calls: BTreeMap<(RankId, RankId), VecDeque<ToCallee>>,
    answers: BTreeMap<(RankId, RankId), VecDeque<ToCaller>>,
    last_tag: u64,
    tags: BTreeMap<ObjectId, u64>,
    /// The tags of calls without references.
    plain: BTreeMap<(RankId, CallNumber), u64>,
    /// Those that may have no value.
    fallible: BTreeSet<ObjectId>,
    store: BTreeMap<ObjectId, Bytes>,
    freed: BTreeSet<ObjectId>,
    has_died: bool,
}

/// Draws numbers from one.
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if count == 0 { 0 } else { (self.0 >> 33) as usize % count }
    }

    fn some(&mut self, all: &[ObjectId], most: usize) -> Vec<ObjectId> {
        let count = if all.is_empty() { 0 } else { self.below(most + 1) };
        (0..count).map(|_| all[self.below(all.len())]).collect()
    }

    fn who(&mut self) -> RankId {
        MEMBERS[self.below(MEMBERS.len())]
    }
}

impl World {
    fn new() -> World {
        let mut it = World {
            coordinator: Coordinator::new(ROOT, root_node(), None, None),
            processes: BTreeMap::new(),
            to_coordinator: BTreeMap::new(),
            from_coordinator: BTreeMap::new(),
            calls: BTreeMap::new(),
            answers: BTreeMap::new(),
            last_tag: 0,
            tags: BTreeMap::new(),
            plain: BTreeMap::new(),
            fallible: BTreeSet::new(),
            store: BTreeMap::new(),
            freed: BTreeSet::new(),
            has_died: false,
        };
        for name in MEMBERS {
            let core = Member::new(name, ROOT);
            let (variables, running) = (Vec::new(), Vec::new());
            let process =
                Process { core, variables, running, awaited: BTreeSet::new(), opens: BTreeMap::new() };
            it.processes.insert(name, process);
            effects(|all| {
                it.coordinator.main(name.job(), all);
                it.coordinator.connected(name, "n0", all);
            });
            it.act(name, |core, all| core.receive(FromCoordinator::ServeTasks { class: class() }, all));
        }
        for (name, runner) in MEMBERS.into_iter().flat_map(|name| MEMBERS.map(|runner| (name, runner))) {
            let joined = FromCoordinator::RunnerJoined { class: class(), runner };
            it.act(name, |core, all| core.receive(joined, all));
        }
        it
    }

    fn act<T>(&mut self, who: RankId, act: impl FnOnce(&mut Member, &mut Vec<MemberEffect>) -> T) -> T {
        let mut all = Vec::new();
        let result = act(&mut self.processes.get_mut(&who).unwrap().core, &mut all);
        let mut all = VecDeque::from(all);
        while let Some(effect) = all.pop_front() {
            // What the shell does then comes after.
            all.extend(self.carry_out(who, effect));
        }
        // Nobody waits for what is not held; it may come back with its value.
        let Process { core, awaited, .. } = self.processes.get_mut(&who).unwrap();
        awaited.retain(|object| core.holds.is_held(HeldId::Object(*object)));
        result
    }

    fn carry_out(&mut self, who: RankId, effect: MemberEffect) -> Vec<MemberEffect> {
        let process = self.processes.get_mut(&who).unwrap();
        let mut more = Vec::new();
        if let MemberEffect::ToCoordinator(frame) = effect {
            if !matches!(frame, ToCoordinator::WantRunners { .. } | ToCoordinator::Idle) {
                self.to_coordinator.entry(who).or_default().push_back(frame);
            }
        } else if let MemberEffect::ToCallee { to, frame } = effect {
            self.calls.entry((who, to)).or_default().push_back(frame);
        } else if let MemberEffect::ToCaller { to, frame } = effect {
            self.answers.entry((to, who)).or_default().push_back(frame);
        } else if let MemberEffect::Close { member } = effect {
            self.calls.remove(&(member, who));
            self.answers.remove(&(who, member));
        } else if let MemberEffect::StartTask { ticket, arguments, needs, carries, .. } = effect {
            let (tag, references) = decode(&arguments);
            let interrupted = false;
            process.running.push(Running { ticket, tag, references, needs, carries, interrupted });
        } else if let MemberEffect::Interrupt { ticket } = effect {
            process.running.iter_mut().filter(|it| it.ticket == ticket).for_each(|it| it.interrupted = true);
        } else if let MemberEffect::ObjectReady { object, .. } = effect {
            process.awaited.remove(&object);
        } else if let MemberEffect::Opened { request, carries } = effect {
            let object = process.opens.remove(&request).unwrap();
            let inner = decode(&self.store[&object]).1.into_iter().map(HeldId::Object);
            assert!(self.has_died || carries == inner.collect::<Vec<_>>(), "{object}");
            more.extend(process.take(&carries));
        } else if let MemberEffect::Finish { call, result, carries } = effect {
            if let (Ok(CallValue::Inline(bytes)), Some(tag)) = (&result, self.plain.get(&(who, call))) {
                assert_eq!(decode(bytes).0, *tag);
            }
            more.extend(process.take(&carries));
        }
        more
    }

    fn tag(&mut self) -> u64 {
        self.last_tag += 1;
        self.last_tag
    }

    fn variables(&self, who: RankId) -> Vec<ObjectId> {
        self.processes[&who].variables.clone()
    }

    /// A task is called with some references in its arguments, and needs the values of some of these.
    fn call(&mut self, draw: &mut Draw) {
        let (who, tag) = (draw.who(), self.tag());
        let Some(process) = self.processes.get(&who) else { return };
        let references = draw.some(&process.variables, 4);
        let needs: Vec<ObjectId> = references.iter().copied().filter(|_| draw.below(2) == 0).collect();
        let is_fallible = fails(tag) || needs.iter().any(|need| self.fallible.contains(need));
        let carries = references.iter().map(|it| HeldId::Object(*it)).collect();
        let spec = TaskSpec { arguments: encode(tag, &references), needs, carries, ..task() };
        if draw.below(4) == 0 {
            if let Ok(call) = self.act(who, |core, all| core.run_task(spec, all)) {
                self.plain.insert((who, call), tag);
            }
            return;
        }
        match self.act(who, |core, all| core.run_task_for_reference(spec, all)) {
            Err(error) => assert!(is_fallible || self.has_died, "{error}"),
            Ok((_, object)) => {
                self.tags.insert(object, tag);
                self.fallible.extend(is_fallible.then_some(object));
                self.processes.get_mut(&who).unwrap().variables.push(object);
                if draw.below(6) == 0 {
                    self.act(who, |core, _| core.detach_reference(object));
                }
            }
        }
    }

    /// A process makes an object of its own.
    fn make(&mut self, draw: &mut Draw) {
        let (who, tag) = (draw.who(), self.tag());
        let Some(process) = self.processes.get(&who) else { return };
        let references = draw.some(&process.variables, 3);
        let object = if draw.below(2) == 0 {
            let carries = references.iter().map(|it| HeldId::Object(*it)).collect();
            self.act(who, |core, all| core.keep_inline(encode(tag, &references), carries, all))
        } else {
            self.store(who, tag, &references).object
        };
        self.tags.insert(object, tag);
        self.processes.get_mut(&who).unwrap().variables.push(object);
    }

    fn store(&mut self, who: RankId, tag: u64, references: &[ObjectId]) -> StoredObject {
        let bytes = encode(tag, references);
        let carries: Vec<HeldId> = references.iter().map(|it| HeldId::Object(*it)).collect();
        let size = bytes.len() as u64;
        let object = self.act(who, |core, _| core.new_object());
        self.store.insert(object, bytes);
        self.act(who, |core, all| core.stored(object, size, &carries, all))
    }

    fn release(&mut self, who: RankId, all: &[ObjectId]) {
        all.iter().for_each(|it| self.act(who, |core, more| core.release(HeldId::Object(*it), more)));
    }

    fn drop_one(&mut self, draw: &mut Draw) {
        let who = draw.who();
        let Some(process) = self.processes.get_mut(&who).filter(|it| !it.variables.is_empty()) else {
            return;
        };
        let at = draw.below(process.variables.len());
        let object = process.variables.swap_remove(at);
        self.release(who, &[object]);
    }

    /// Somebody reads the value of a reference, and takes the references in it.
    fn read(&mut self, who: RankId, object: ObjectId) {
        let Some(value) = self.look(who, object) else { return };
        let bytes = match value {
            ObjectValue::Inline(bytes) => bytes,
            ObjectValue::Failed(_) => return,
            ObjectValue::Stored(stored) if stored.has_handles => {
                let request = self.act(who, |core, all| core.open_object(stored.object, all));
                _ = self.processes.get_mut(&who).unwrap().opens.insert(request, stored.object);
                return;
            }
            ObjectValue::Stored(_) => return,
        };
        let process = self.processes.get_mut(&who).unwrap();
        for inner in decode(&bytes).1 {
            assert!(process.core.hold(HeldId::Object(inner)), "what is in {object} is held with it");
            process.variables.push(inner);
        }
    }

    /// The value of a reference, which has to be the right one.
    fn look(&mut self, who: RankId, object: ObjectId) -> Option<ObjectValue> {
        let process = self.processes.get_mut(&who).unwrap();
        let Some(value) = process.core.object_value(object) else {
            process.awaited.insert(object);
            return None;
        };
        let bytes = match &value {
            ObjectValue::Inline(bytes) => bytes,
            ObjectValue::Failed(error) => {
                assert!(self.fallible.contains(&object) || self.has_died, "{object} has failed: {error}");
                return Some(value);
            }
            ObjectValue::Stored(stored) => {
                assert!(
                    process.core.holds.is_held(HeldId::Object(stored.object)),
                    "a value holds its object"
                );
                &self.store[&stored.object]
            }
        };
        assert_eq!(decode(bytes).0, self.tags[&object], "{object}");
        Some(value)
    }

    /// A task that has started goes on to its end, unless it needs what is not known. Whether one has ended.
    fn end_task(&mut self, who: RankId, draw: &mut Draw) -> bool {
        let Some(process) = self.processes.get_mut(&who).filter(|it| !it.running.is_empty()) else {
            return false;
        };
        let at = draw.below(process.running.len());
        let task = process.running.swap_remove(at);
        let is_known = task.needs.iter().filter(|need| self.look(who, **need).is_none()).count() == 0;
        if !is_known && !task.interrupted {
            self.processes.get_mut(&who).unwrap().running.push(task);
            return false;
        }
        let process = self.processes.get_mut(&who).unwrap();
        for inner in &task.references {
            assert!(process.core.hold(HeldId::Object(*inner)), "arguments are held");
        }
        task.carries.iter().for_each(|held| self.act(who, |core, all| core.release(*held, all)));
        let inner = if draw.below(2) == 0 { task.references.clone() } else { Vec::new() };
        let inline = |it: &[ObjectId]| it.iter().map(|it| HeldId::Object(*it)).collect::<Vec<HeldId>>();
        let mut stored = None;
        let (result, carries) = if task.interrupted {
            (Err(CallError::Cancelled), Vec::new())
        } else if fails(task.tag) {
            (Err(CallError::Failed("no such file".to_owned())), Vec::new())
        } else if draw.below(3) > 0 {
            (Ok(CallValue::Inline(encode(task.tag, &inner))), inline(&inner))
        } else {
            let value = self.store(who, task.tag, &inner);
            self.tags.insert(value.object, task.tag);
            stored = Some(value.object);
            (Ok(CallValue::Stored(value)), vec![HeldId::Object(value.object)])
        };
        self.act(who, |core, all| core.task_ended(task.ticket, result, carries, Span::ZERO, all));
        self.release(who, &stored.into_iter().collect::<Vec<_>>());
        if draw.below(3) == 0 {
            self.processes.get_mut(&who).unwrap().variables.extend(task.references);
        } else {
            self.release(who, &task.references);
        }
        true
    }

    fn fail(&mut self, draw: &mut Draw) {
        let who = draw.who();
        let Some(process) = self.processes.get(&who) else { return };
        if let Some(object) = draw.some(&process.variables, 1).pop().filter(|it| it.maker == who) {
            self.fail_all_from(object);
            let error = CallError::TimedOut(Span::from_secs(1));
            self.act(who, |core, all| core.fail_reference(object, error, all));
        }
    }

    /// Nothing is said of what depends on a value that fails by hand.
    fn fail_all_from(&mut self, object: ObjectId) {
        self.fallible.insert(object);
        let later: Vec<ObjectId> = self.tags.keys().copied().collect();
        self.fallible.extend(later);
    }

    fn deliver_to_coordinator(&mut self, from: RankId) -> bool {
        let Some(frame) = self.to_coordinator.get_mut(&from).and_then(VecDeque::pop_front) else {
            return false;
        };
        let all = effects(|all| self.coordinator.received(from, frame, all));
        self.carry_out_coordinator(all);
        true
    }

    fn carry_out_coordinator(&mut self, all: Vec<CoordinatorEffect>) {
        for effect in all {
            if let CoordinatorEffect::Send { to, frame } = effect {
                if self.processes.contains_key(&to) {
                    self.from_coordinator.entry(to).or_default().push_back(frame);
                }
            } else if let CoordinatorEffect::OwnStore(ToStore::Free { object }) = effect {
                let is_new = self.freed.insert(object);
                // Of a process that has ended, more may be freed than it stored, and that twice.
                let has_ended = !self.processes.contains_key(&object.maker);
                assert!(has_ended || (is_new && self.store.contains_key(&object)), "{object}");
                // A reference by its value is held, too, and nothing is stored under its name.
                let is_held = |process: &Process| process.core.holds.is_held(HeldId::Object(object));
                for (name, process) in self.processes.iter().filter(|_| self.store.contains_key(&object)) {
                    assert!(!is_held(process), "{name} holds {object}");
                }
            } else if let CoordinatorEffect::OwnStore(ToStore::Forget { maker, keep }) = effect {
                let made = self.store.keys().filter(|it| it.maker == maker && !keep.contains(it));
                self.freed.extend(made.copied());
            }
        }
    }

    /// One frame of a session that is chosen among all.
    fn deliver(&mut self, which: usize) -> bool {
        let pairs: Vec<_> = MEMBERS.into_iter().flat_map(|a| MEMBERS.map(|b| (a, b))).collect();
        match which % 24 {
            at @ 0..3 => self.deliver_to_coordinator(MEMBERS[at]),
            at @ 3..6 => {
                let to = MEMBERS[at - 3];
                let frame = self.from_coordinator.get_mut(&to).and_then(VecDeque::pop_front);
                frame.map(|frame| self.act(to, |core, all| core.receive(frame, all))).is_some()
            }
            at @ 6..15 => {
                let (caller, callee) = pairs[at - 6];
                let Some(_) = self.processes.get(&callee) else { return false };
                let frame = self.calls.get_mut(&(caller, callee)).and_then(VecDeque::pop_front);
                frame
                    .map(|it| self.act(callee, |core, all| core.receive_from_caller(caller, it, all)))
                    .is_some()
            }
            at => {
                let (caller, callee) = pairs[at - 15];
                let Some(_) = self.processes.get(&caller) else { return false };
                let frame = self.answers.get_mut(&(caller, callee)).and_then(VecDeque::pop_front);
                frame
                    .map(|it| self.act(caller, |core, all| core.receive_from_callee(callee, it, all)))
                    .is_some()
            }
        }
    }

    /// The mortal process ends. What it has sent to others may still arrive, until they hear of its end.
    fn die(&mut self) {
        if self.processes.remove(&MORTAL).is_some() {
            self.has_died = true;
            self.to_coordinator.remove(&MORTAL);
            self.from_coordinator.remove(&MORTAL);
            let state = RunnerState::Ended { code: 1, text: "its process ended with 1".to_owned() };
            let report = RunnerReport { ended_attempts: 1, state };
            let all = effects(|all| self.coordinator.report(MORTAL.job(), report, all));
            self.carry_out_coordinator(all);
        }
    }

    fn step(&mut self, kind: u8, draw: &mut Draw) {
        let who = draw.who();
        match kind {
            0..4 => self.call(draw),
            4..6 => self.make(draw),
            6..9 => self.drop_one(draw),
            9..12 if self.processes.contains_key(&who) => {
                let chosen = draw.some(&self.variables(who), 1);
                chosen.into_iter().for_each(|object| self.read(who, object));
            }
            12..15 => _ = self.end_task(who, draw),
            15 => self.fail(draw),
            _ => {
                let which = draw.below(24);
                // Most sessions are empty at most times.
                _ = (0..24).any(|more| self.deliver(which + more));
            }
        }
    }

    /// All frames arrive and all tasks end.
    fn settle(&mut self) {
        loop {
            let mut any = false;
            for which in 0..24 {
                any |= self.deliver(which);
            }
            for who in MEMBERS {
                any |= self.end_task(who, &mut Draw(1));
            }
            if !any {
                break;
            }
        }
    }

    fn finish(&mut self) {
        self.settle();
        let living: Vec<RankId> = self.processes.keys().copied().collect();
        for who in &living {
            assert_eq!(self.processes[who].running.len(), 0, "every task has had what it needs");
            for object in self.variables(*who) {
                assert!(!self.processes[who].awaited.contains(&object), "{who} was not told of {object}");
                assert!(self.look(*who, object).is_some(), "{who} does not know {object}");
            }
        }
        for who in &living {
            let all = std::mem::take(&mut self.processes.get_mut(who).unwrap().variables);
            self.release(*who, &all);
        }
        self.settle();
        for who in &living {
            let all = std::mem::take(&mut self.processes.get_mut(who).unwrap().variables);
            self.release(*who, &all);
        }
        self.settle();
        for (who, process) in &self.processes {
            assert!(process.opens.is_empty(), "{who}");
            assert!(process.core.is_idle(), "{who}: {:#?}", process.core);
        }
        assert!(self.coordinator.is_idle(), "{:#?}", self.coordinator);
        let kept: Vec<_> = self.store.keys().filter(|it| !self.freed.contains(it)).collect();
        assert_eq!(kept, Vec::<&ObjectId>::new());
    }
}

impl Process {
    /// The shell decodes a value and keeps the references in it.
    fn take(&mut self, carries: &[HeldId]) -> Vec<MemberEffect> {
        for held in carries {
            assert!(self.core.hold(*held));
            if let HeldId::Object(object) = held {
                self.variables.push(*object);
            }
        }
        effects(|all| carries.iter().for_each(|held| self.core.release(*held, all)))
    }
}

fn program() -> impl Strategy<Value = Vec<(u8, u64)>> {
    vec((0..40_u8, any::<u64>()), 0..150)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_reference_becomes_its_value_and_nothing_is_left(program in program()) {
        let mut world = World::new();
        for (kind, seed) in program {
            world.step(kind, &mut Draw(seed));
        }
        world.finish();
    }

    #[test]
    fn nothing_hangs_and_nothing_is_left_when_a_process_ends(program in program(), death in 0..150_usize) {
        let mut world = World::new();
        for (at, (kind, seed)) in program.into_iter().enumerate() {
            if at == death {
                world.die();
            }
            world.step(kind, &mut Draw(seed));
        }
        world.die();
        world.finish();
    }
}
