//! Any sequence of requests and answers, against a node that only carries out effects.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cohabit_types::RankId;
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::kit::member;
use crate::{
    CallError, ObjectId, ObjectKind, ObjectPlace, ObjectStore, ObjectStoreEffect, StoreRefusal,
    TransferResult,
};

const BUDGET: u64 = 100;
const MOST: usize = 1_000;

/// Two processes name the objects in turn.
const fn object(number: u64) -> ObjectId {
    ObjectId { maker: member(10 + number % 2), number }
}

/// What happens; numbers choose among what is there.
#[derive(Debug, Clone)]
enum Action {
    Reserve {
        bytes: u64,
        kind: ObjectKind,
        maker: u64,
    },
    Fill(usize),
    NotAllocated(usize),
    Abandon(usize),
    Want(usize, u64),
    Map(usize, u64),
    Unmap(usize),
    End(u64),
    Free(usize),
    /// One of the two has ended, and somebody holds one of its objects.
    Forget(u64, usize),
    TimeOut(usize),
    FinishSpill(usize, TransferResult),
    FinishReturn(usize, TransferResult),
    /// There is an object of so many bytes on another node.
    Elsewhere(u64),
    /// The coordinator answers one of the questions.
    AnswerFetch(usize),
    AnswerLost(usize),
    FinishFetch(usize, TransferResult),
    /// An object that is not here is made again.
    Remake(usize, u64),
    /// Another node fetches it from here.
    Serve(usize),
    /// No other node may have it.
    Keep(usize),
}

fn actions() -> impl Strategy<Value = Action> {
    let (any, who) = (any::<usize>, || 2..5u64);
    let bytes = prop_oneof![4 => 0..=BUDGET / 2, 1 => 0..=BUDGET + 1];
    let kind = prop_oneof![3 => Just(ObjectKind::Primary), 1 => Just(ObjectKind::Copy)];
    let result = || prop_oneof![4 => Just(TransferResult::Done), 1 => Just(TransferResult::Failed)];
    prop_oneof![
        8 => (bytes, kind, who())
            .prop_map(|(bytes, kind, maker)| Action::Reserve { bytes, kind, maker }),
        8 => any().prop_map(Action::Fill),
        1 => any().prop_map(Action::NotAllocated),
        1 => any().prop_map(Action::Abandon),
        8 => (any(), who()).prop_map(|(object, by)| Action::Want(object, by)),
        1 => (any(), who()).prop_map(|(object, by)| Action::Map(object, by)),
        6 => any().prop_map(Action::Unmap),
        1 => who().prop_map(Action::End),
        3 => any().prop_map(Action::Free),
        1 => (10..12u64, any()).prop_map(|(maker, keep)| Action::Forget(maker, keep)),
        2 => any().prop_map(Action::TimeOut),
        6 => (any(), result()).prop_map(|(which, result)| Action::FinishSpill(which, result)),
        6 => (any(), result()).prop_map(|(which, result)| Action::FinishReturn(which, result)),
        3 => (0..=BUDGET + 1).prop_map(Action::Elsewhere),
        6 => any().prop_map(Action::AnswerFetch),
        1 => any().prop_map(Action::AnswerLost),
        6 => (any(), result()).prop_map(|(which, result)| Action::FinishFetch(which, result)),
        2 => (any(), who()).prop_map(|(which, maker)| Action::Remake(which, maker)),
        1 => any().prop_map(Action::Serve),
        2 => any().prop_map(Action::Keep),
    ]
}

/// What a node would have.
#[derive(Debug, Default)]
struct Node {
    /// Sizes of what lies in memory and on disk.
    memory: BTreeMap<ObjectId, u64>,
    disk: BTreeMap<ObjectId, u64>,
    sizes: BTreeMap<ObjectId, (u64, ObjectKind)>,
    unfilled: BTreeMap<ObjectId, RankId>,
    spilling: Vec<ObjectId>,
    returning: Vec<ObjectId>,
    mappings: Vec<(ObjectId, RankId)>,
    /// Complete primaries that somebody holds.
    precious: Vec<ObjectId>,
    freed: BTreeSet<ObjectId>,
    /// Requests without an answer.
    reservations: BTreeMap<ObjectId, RankId>,
    readers: Vec<(ObjectId, RankId)>,
    /// Objects that wait for room, in order.
    queue: VecDeque<ObjectId>,
    /// Questions that the coordinator has not answered.
    asked: Vec<ObjectId>,
    /// What it said to fetch, until it is told how that ended; and what of it is on its way.
    to_fetch: Vec<ObjectId>,
    fetching: Vec<ObjectId>,
    /// Where the coordinator believes a copy.
    copies: BTreeSet<ObjectId>,
}

fn lost() -> CallError {
    CallError::ObjectLost("its node is gone".to_owned())
}

fn choose<T: Copy>(from: impl ExactSizeIterator<Item = T>, which: usize) -> Option<T> {
    let mut from = from;
    let count = from.len();
    (count > 0).then(|| from.nth(which % count)).flatten()
}

impl Node {
    /// Carries out one effect; it must be possible.
    fn carry_out(&mut self, effect: ObjectStoreEffect) {
        match effect {
            ObjectStoreEffect::Allocate { object, bytes, maker } => {
                assert_eq!(self.reservations.remove(&object), Some(maker));
                self.leave_queue_in_order(object);
                assert_eq!(self.memory.insert(object, bytes), None);
                self.unfilled.insert(object, maker);
            }
            ObjectStoreEffect::HandOver { object, to } => {
                self.answer(object, to);
                assert!(self.memory.contains_key(&object) && !self.unfilled.contains_key(&object));
                assert!(!self.returning.contains(&object), "it is complete");
                self.mappings.push((object, to));
            }
            ObjectStoreEffect::Spill { object } => {
                assert!(self.memory.contains_key(&object) && !self.disk.contains_key(&object));
                assert!(self.mappings.iter().all(|(mapped, _)| *mapped != object));
                assert_eq!(self.sizes[&object].1, ObjectKind::Primary);
                self.spilling.push(object);
            }
            ObjectStoreEffect::BringBack { object } => {
                self.leave_queue_in_order(object);
                assert!(self.disk.contains_key(&object));
                assert_eq!(self.memory.insert(object, self.sizes[&object].0), None);
                self.returning.push(object);
            }
            ObjectStoreEffect::Drop { object, place: ObjectPlace::Memory } => {
                assert!(self.mappings.iter().all(|(mapped, _)| *mapped != object));
                assert!(self.memory.remove(&object).is_some());
                self.unfilled.remove(&object);
            }
            ObjectStoreEffect::Drop { object, place: ObjectPlace::Disk } => {
                assert!(self.disk.remove(&object).is_some());
            }
            ObjectStoreEffect::Refuse { object, to, reason } => self.refuse(object, to, reason),
            ObjectStoreEffect::AwaitFetch { object, to } => {
                assert!(self.readers.contains(&(object, to)) && !self.is_complete(object));
            }
            ObjectStoreEffect::Ask { object } => {
                assert!(!self.asked.contains(&object) && !self.to_fetch.contains(&object));
                self.asked.push(object);
                // Whoever wants it holds it.
                self.freed.remove(&object);
            }
            ObjectStoreEffect::Fetch { object, bytes } => {
                self.leave_queue_in_order(object);
                assert!(self.to_fetch.contains(&object) && !self.disk.contains_key(&object));
                assert_eq!(self.memory.insert(object, bytes), None);
                self.sizes.insert(object, (bytes, ObjectKind::Copy));
                self.fetching.push(object);
            }
            ObjectStoreEffect::FetchSettled { object } => self.fetch_ended(object, TransferResult::Done),
            ObjectStoreEffect::CopyDropped { object } => {
                assert!(self.copies.remove(&object) || self.freed.contains(&object));
                self.forget_queue_without_readers(object);
            }
            ObjectStoreEffect::Lose { object, to, error } => {
                assert_eq!(error, lost());
                self.answer(object, to);
            }
        }
    }

    /// The coordinator hears how a fetch ended.
    fn fetch_ended(&mut self, object: ObjectId, result: TransferResult) {
        let place = self.to_fetch.iter().position(|it| *it == object).expect("it was told to");
        self.to_fetch.remove(place);
        match (self.freed.contains(&object), result) {
            (true, _) => {}
            (false, TransferResult::Done) => _ = self.copies.insert(object),
            (false, TransferResult::Failed) => self.asked.push(object),
        }
    }

    fn is_complete(&self, object: ObjectId) -> bool {
        let is_filled = !self.unfilled.contains_key(&object) && !self.fetching.contains(&object);
        (self.memory.contains_key(&object) && is_filled) || self.disk.contains_key(&object)
    }

    /// Nobody holds it any more.
    fn freed(&mut self, object: ObjectId) {
        self.precious.retain(|it| *it != object);
        self.asked.retain(|it| *it != object);
        self.copies.remove(&object);
        self.freed.insert(object);
    }

    fn refuse(&mut self, object: ObjectId, to: RankId, reason: StoreRefusal) {
        if self.reservations.get(&object) == Some(&to) {
            self.reservations.remove(&object);
            self.queue.retain(|it| *it != object);
        } else if self.unfilled.get(&object) == Some(&to) && reason == StoreRefusal::Full {
            // There was no memory after all.
            self.unfilled.remove(&object);
            self.memory.remove(&object);
        } else {
            self.answer(object, to);
            self.forget_queue_without_readers(object);
        }
    }

    fn answer(&mut self, object: ObjectId, to: RankId) {
        let place = self.readers.iter().position(|it| *it == (object, to)).expect("it was wanted");
        self.readers.remove(place);
    }

    fn leave_queue_in_order(&mut self, object: ObjectId) {
        if self.queue.contains(&object) {
            assert_eq!(self.queue.pop_front(), Some(object), "nobody overtakes");
        } else {
            assert_eq!(self.queue, [], "nobody overtakes");
        }
    }

    fn forget_queue_without_readers(&mut self, object: ObjectId) {
        let is_wanted = self.readers.iter().any(|(wanted, _)| *wanted == object);
        if !is_wanted && !self.reservations.contains_key(&object) {
            self.queue.retain(|it| *it != object);
        }
    }

    /// Requests that had no answer at once wait at the end.
    fn note_waiting(&mut self, object: ObjectId) {
        let waits_on_disk = self.disk.contains_key(&object)
            && !self.returning.contains(&object)
            && self.readers.iter().any(|(wanted, _)| *wanted == object);
        let waits_for_fetch = self.to_fetch.contains(&object) && !self.fetching.contains(&object);
        let waits = self.reservations.contains_key(&object) || waits_on_disk || waits_for_fetch;
        if waits && !self.queue.contains(&object) {
            self.queue.push_back(object);
        }
    }

    fn member_ended(&mut self, by: RankId) {
        self.mappings.retain(|(_, member)| *member != by);
        self.readers.retain(|(_, member)| *member != by);
        for object in self.queue.clone() {
            self.forget_queue_without_readers(object);
        }
        self.abandoned(by);
    }

    fn abandoned(&mut self, by: RankId) {
        let given_up: Vec<ObjectId> =
            self.reservations.extract_if(.., |_, it| *it == by).map(|it| it.0).collect();
        self.queue.retain(|it| !given_up.contains(it));
    }

    /// Memory and disk are as the store says, and nothing is lost.
    fn agree(&self, store: &ObjectStore) {
        store.check().unwrap();
        assert_eq!(self.memory.values().sum::<u64>(), store.memory_bytes());
        assert!(store.memory_bytes() <= BUDGET);
        let complete = self.disk.iter().filter(|(object, _)| !self.spilling.contains(object));
        assert_eq!(complete.map(|(_, bytes)| bytes).sum::<u64>(), store.disk_bytes());
        for object in &self.precious {
            assert!(self.memory.contains_key(object) || self.disk.contains_key(object), "{object} is lost");
        }
        for object in self.memory.keys().filter(|object| self.disk.contains_key(object)) {
            assert!(self.returning.contains(object), "{object} is at two places");
        }
        for object in self.sizes.keys() {
            let has = self.is_complete(*object) && !self.freed.contains(object);
            assert_eq!(store.has(*object), has, "{object}");
            let is_copy = self.sizes[object].1 == ObjectKind::Copy;
            assert!(has || !self.copies.contains(object), "the coordinator believes {object} to be here");
            assert!(
                !(has && is_copy) || self.copies.contains(object),
                "the coordinator does not know {object}"
            );
        }
    }
}

/// The store, and a node that does as it says.
struct Run {
    store: ObjectStore,
    node: Node,
    last: u64,
}

impl Run {
    fn new() -> Run {
        Run { store: ObjectStore::new(BUDGET, MOST), node: Node::default(), last: 0 }
    }

    fn step(&mut self, step: impl FnOnce(&mut ObjectStore, &mut Vec<ObjectStoreEffect>)) {
        let mut effects = Vec::new();
        step(&mut self.store, &mut effects);
        for effect in effects {
            self.node.carry_out(effect);
        }
    }

    fn known(&self, which: usize) -> Option<ObjectId> {
        (self.last > 0).then(|| object(which as u64 % self.last + 1))
    }

    fn keep(&mut self, object: ObjectId) {
        self.store.keep(object);
        let is_complete = self.node.is_complete(object);
        if let Some((_, kind)) = self.node.sizes.get_mut(&object).filter(|_| is_complete) {
            *kind = ObjectKind::Primary;
        }
        if self.store.has(object) && !self.node.precious.contains(&object) {
            self.node.precious.push(object);
        }
    }

    fn reserve(&mut self, bytes: u64, kind: ObjectKind, maker: RankId) {
        self.last += 1;
        let object = object(self.last);
        self.node.sizes.insert(object, (bytes, kind));
        self.node.reservations.insert(object, maker);
        self.step(|store, out| store.reserve(object, bytes, kind, maker, out));
        self.node.note_waiting(object);
    }

    fn fill(&mut self, object: ObjectId) {
        self.node.unfilled.remove(&object);
        match self.node.sizes[&object].1 {
            _ if self.node.freed.contains(&object) => {}
            ObjectKind::Primary => self.node.precious.push(object),
            ObjectKind::Copy => _ = self.node.copies.insert(object),
        }
        self.step(|store, out| store.filled(object, out));
    }

    fn want(&mut self, object: ObjectId, by: RankId) {
        self.node.readers.push((object, by));
        self.step(|store, out| store.wanted(object, by, out));
        self.node.note_waiting(object);
    }

    fn map(&mut self, object: ObjectId, by: RankId) {
        let is_whole = self.node.memory.contains_key(&object) && self.node.is_complete(object);
        if is_whole && !self.node.returning.contains(&object) {
            self.node.mappings.push((object, by));
            self.store.mapped(object, by);
        }
    }

    fn unmap(&mut self, which: usize) {
        let Some((object, by)) = choose(self.node.mappings.iter().copied(), which) else { return };
        let place = self.node.mappings.iter().position(|it| *it == (object, by)).unwrap();
        self.node.mappings.remove(place);
        self.step(|store, out| store.unmapped(object, by, out));
    }

    fn free(&mut self, object: ObjectId) {
        self.node.freed(object);
        self.step(|store, out| store.free(object, out));
    }

    fn abandon(&mut self, which: usize) {
        let unfilled = self.node.unfilled.iter().chain(&self.node.reservations);
        let unfilled: Vec<_> = unfilled.map(|(object, by)| (*object, *by)).collect();
        let Some((object, by)) = choose(unfilled.into_iter(), which) else { return };
        self.node.reservations.remove(&object);
        self.node.queue.retain(|it| *it != object);
        self.step(|store, out| store.abandoned(object, by, out));
    }

    fn forget(&mut self, maker: RankId, keep: usize) {
        let keep: BTreeSet<ObjectId> = self.known(keep).into_iter().collect();
        let named = self.node.sizes.keys().filter(|it| it.maker == maker && !keep.contains(it));
        let named: BTreeSet<ObjectId> = named.copied().collect();
        named.iter().for_each(|object| self.node.freed(*object));
        self.step(|store, out| store.forget(maker, &keep, out));
        let figures = self.store.figures();
        let left = figures.objects.iter().filter(|it| named.contains(&it.object));
        for figures in left {
            assert!(self.is_used(figures.object), "{} is left", figures.object);
        }
    }

    /// Whether something is done with an object, or somebody maps it.
    fn is_used(&self, object: ObjectId) -> bool {
        let Node { unfilled, spilling, returning, fetching, mappings, .. } = &self.node;
        let is_mapped = mappings.iter().any(|(mapped, _)| *mapped == object);
        is_mapped
            || unfilled.contains_key(&object)
            || spilling.contains(&object)
            || returning.contains(&object)
            || fetching.contains(&object)
    }

    fn time_out(&mut self, which: usize) {
        let makers = self.node.reservations.iter().map(|(object, by)| (*object, *by));
        let waiting: Vec<_> = makers.chain(self.node.readers.iter().copied()).collect();
        let Some((object, by)) = choose(waiting.into_iter(), which) else { return };
        self.step(|store, out| store.timed_out(object, by, out));
    }

    fn finish_spill(&mut self, which: usize, result: TransferResult) {
        let Some(object) = choose(self.node.spilling.iter().copied(), which) else { return };
        self.node.spilling.retain(|it| *it != object);
        if result == TransferResult::Done {
            self.node.disk.insert(object, self.node.sizes[&object].0);
        }
        self.step(|store, out| store.spilled(object, result, out));
    }

    fn finish_return(&mut self, which: usize, result: TransferResult) {
        let Some(object) = choose(self.node.returning.iter().copied(), which) else { return };
        self.node.returning.retain(|it| *it != object);
        if result == TransferResult::Failed {
            self.node.memory.remove(&object);
        }
        self.step(|store, out| store.brought_back(object, result, out));
    }

    fn answer_fetch(&mut self, which: usize) {
        let Some(object) = choose(self.node.asked.iter().copied(), which) else { return };
        self.node.asked.retain(|it| *it != object);
        self.node.to_fetch.push(object);
        let bytes = self.node.sizes[&object].0;
        self.step(|store, out| store.fetch(object, bytes, out));
        self.node.note_waiting(object);
    }

    fn answer_lost(&mut self, which: usize) {
        let Some(object) = choose(self.node.asked.iter().copied(), which) else { return };
        self.node.asked.retain(|it| *it != object);
        self.step(|store, out| store.lost(object, &lost(), out));
    }

    fn finish_fetch(&mut self, which: usize, result: TransferResult) {
        let Some(object) = choose(self.node.fetching.iter().copied(), which) else { return };
        self.node.fetching.retain(|it| *it != object);
        self.node.fetch_ended(object, result);
        self.step(|store, out| store.fetched(object, result, out));
    }

    fn not_allocated(&mut self, which: usize) {
        let fetching = self.node.fetching.iter().copied();
        let allocating: Vec<ObjectId> = self.node.unfilled.keys().copied().chain(fetching).collect();
        let Some(object) = choose(allocating.into_iter(), which) else { return };
        if self.node.fetching.contains(&object) {
            self.node.fetching.retain(|it| *it != object);
            self.node.memory.remove(&object);
        }
        self.step(|store, out| store.not_allocated(object, out));
    }

    /// As large as it was, and by any process.
    fn remake(&mut self, object: ObjectId, maker: RankId) {
        let Node { reservations, memory, disk, to_fetch, .. } = &self.node;
        let is_here = memory.contains_key(&object) || disk.contains_key(&object);
        if is_here || reservations.contains_key(&object) || to_fetch.contains(&object) {
            return;
        }
        let bytes = self.node.sizes[&object].0;
        if bytes <= BUDGET {
            self.node.freed.remove(&object);
            self.node.sizes.insert(object, (bytes, ObjectKind::Primary));
        }
        self.node.reservations.insert(object, maker);
        self.step(|store, out| store.reserve(object, bytes, ObjectKind::Primary, maker, out));
        self.node.note_waiting(object);
    }

    fn act(&mut self, action: &Action) {
        match *action {
            Action::Reserve { bytes, kind, maker } => self.reserve(bytes, kind, member(maker)),
            Action::Fill(which) => {
                let unfilled = choose(self.node.unfilled.keys().copied(), which);
                unfilled.into_iter().for_each(|object| self.fill(object));
            }
            Action::NotAllocated(which) => self.not_allocated(which),
            Action::Abandon(which) => self.abandon(which),
            Action::Want(which, by) => {
                self.known(which).into_iter().for_each(|it| self.want(it, member(by)));
            }
            Action::Map(which, by) => {
                self.known(which).into_iter().for_each(|it| self.map(it, member(by)));
            }
            Action::Unmap(which) => self.unmap(which),
            Action::End(by) => {
                self.node.member_ended(member(by));
                self.step(|store, out| store.member_ended(member(by), out));
            }
            Action::Free(which) => self.known(which).into_iter().for_each(|it| self.free(it)),
            Action::Forget(maker, keep) => self.forget(member(maker), keep),
            Action::TimeOut(which) => self.time_out(which),
            Action::FinishSpill(which, result) => self.finish_spill(which, result),
            Action::FinishReturn(which, result) => self.finish_return(which, result),
            Action::Elsewhere(bytes) => {
                self.last += 1;
                self.node.sizes.insert(object(self.last), (bytes, ObjectKind::Copy));
            }
            Action::AnswerFetch(which) => self.answer_fetch(which),
            Action::AnswerLost(which) => self.answer_lost(which),
            Action::FinishFetch(which, result) => self.finish_fetch(which, result),
            Action::Remake(which, by) => {
                self.known(which).into_iter().for_each(|it| self.remake(it, member(by)));
            }
            Action::Serve(which) => self.known(which).into_iter().for_each(|it| self.store.served(it)),
            Action::Keep(which) => self.known(which).into_iter().for_each(|it| self.keep(it)),
        }
        self.node.agree(&self.store);
    }

    /// Everything that is under way ends well: nobody waits any more, and all is there.
    fn finish(&mut self) {
        // A failed spill makes those behind it wait for the next request.
        self.act(&Action::Reserve { bytes: 0, kind: ObjectKind::Primary, maker: 2 });
        while self.is_busy() {
            self.act(&Action::Fill(0));
            self.act(&Action::Unmap(0));
            self.act(&Action::FinishSpill(0, TransferResult::Done));
            self.act(&Action::FinishReturn(0, TransferResult::Done));
            self.act(&Action::FinishFetch(0, TransferResult::Done));
            self.act(&Action::AnswerFetch(0));
        }
        assert_eq!(self.node.to_fetch, []);
        assert_eq!((&self.node.reservations, &self.node.readers), (&BTreeMap::new(), &Vec::new()));
        assert_eq!(self.node.queue, []);
        for object in self.node.precious.clone() {
            let before = self.node.mappings.len();
            self.want(object, member(2));
            while self.is_busy() && self.node.mappings.len() == before {
                self.act(&Action::FinishSpill(0, TransferResult::Done));
                self.act(&Action::FinishReturn(0, TransferResult::Done));
            }
            assert_eq!(self.node.mappings, [(object, member(2))], "it is readable");
            self.act(&Action::Unmap(0));
        }
        for number in 0..self.last {
            self.act(&Action::Free(number as usize));
        }
        while self.is_busy() {
            self.act(&Action::FinishSpill(0, TransferResult::Done));
            self.act(&Action::FinishReturn(0, TransferResult::Done));
        }
        assert!(self.store.is_empty() && self.node.memory.is_empty() && self.node.disk.is_empty());
        assert_eq!((self.store.memory_bytes(), self.store.disk_bytes()), (0, 0));
    }

    fn is_busy(&self) -> bool {
        let Node { unfilled, spilling, returning, mappings, asked, fetching, .. } = &self.node;
        let is_moving = [spilling, returning, asked, fetching].into_iter().any(|it| !it.is_empty());
        is_moving || !unfilled.is_empty() || !mappings.is_empty()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_store_keeps_its_budget_its_order_and_its_objects(actions in vec(actions(), 0..120)) {
        let mut run = Run::new();
        for action in &actions {
            run.act(action);
        }
        run.finish();
    }
}
