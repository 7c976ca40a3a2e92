//! The stores of the simulated nodes: the production core, with memory and a disk that take their time.
//!
//! Each process has a connection to the store of its node, on which messages keep their order and that ends
//! with one of the two. What a process waits for when its store ends, it asks the next one for.

use std::collections::BTreeSet;

use cohabit_application_core::{
    FromStore, ObjectId, ObjectKind, ObjectPlace, ObjectStore, ObjectStoreEffect, TransferResult,
};
use cohabit_types::{RankId, Span, Time};

use super::event::ApplicationEvent;
use super::planted_bug::ApplicationBug;
use super::simulated_store::{SimulatedStore, StoreAnswer, StoreCall, StoreWork};
use super::world::ApplicationWorld;

const LINK_DELAY: (Span, Span) = (Span::from_micros(1), Span::from_millis(5));
const TRANSFER: (Span, Span) = (Span::from_micros(100), Span::from_millis(500));
/// How long somebody waits for room.
const PATIENCE: (Span, Span) = (Span::from_secs(2), Span::from_secs(30));

impl ApplicationWorld {
    /// The store of the node of a process.
    pub(super) fn store_of(&self, member: RankId) -> Option<RankId> {
        self.nodes.store(self.nodes.of(member))
    }

    pub(super) fn ask_store(&mut self, member: RankId, request: StoreCall) {
        let Some(store) = self.store_of(member) else { return };
        let Some(at) = self.store_arrival(store, member, 0) else { return };
        self.queue.put(at, ApplicationEvent::AskStore { member, store, request });
    }

    /// A message arrives after all before it.
    fn store_arrival(&mut self, store: RankId, member: RankId, direction: usize) -> Option<Time> {
        let at = self.now + self.random.span(LINK_DELAY);
        let arrivals = self.stores.get_mut(&store)?.arrivals.entry(member);
        let last = &mut arrivals.or_insert([Time::EPOCH; 2])[direction];
        *last = at.max(*last);
        Some(*last)
    }

    pub(super) fn store_receives(&mut self, member: RankId, store: RankId, request: StoreCall) {
        if !self.stores.contains_key(&store) {
            return;
        }
        match request {
            StoreCall::Reserve { object, bytes } => {
                self.drive_store(store, |it, effects| {
                    it.reserve(object, bytes, ObjectKind::Primary, member, effects);
                });
                self.wait_for_room(store, object, member);
            }
            StoreCall::Remake { object, bytes } => {
                if self.stores.get(&store).is_some_and(|it| it.core.has(object)) {
                    return self.store_replies(store, member, StoreAnswer::Stored(object));
                }
                self.drive_store(store, |it, effects| {
                    it.reserve(object, bytes, ObjectKind::Primary, member, effects);
                });
                self.wait_for_room(store, object, member);
            }
            StoreCall::Filled(object) => {
                self.drive_store(store, |it, effects| it.filled(object, effects));
                self.store_replies(store, member, StoreAnswer::Stored(object));
            }
            StoreCall::Want(object) => {
                self.drive_store(store, |it, effects| it.wanted(object, member, effects));
                self.wait_for_room(store, object, member);
            }
            StoreCall::Unmapped(object) => {
                self.drive_store(store, |it, effects| it.unmapped(object, member, effects));
            }
            StoreCall::Ended => {
                let Some(simulated) = self.stores.get_mut(&store) else { return };
                simulated.ended.insert(member);
                let forgotten = simulated.forgotten.remove(&member);
                self.drive_store(store, |it, effects| it.member_ended(member, effects));
                if let Some(keep) = forgotten {
                    self.forget_maker(store, member, keep);
                }
            }
        }
    }

    fn wait_for_room(&mut self, store: RankId, object: ObjectId, member: RankId) {
        let work = StoreWork::TimedOut(object, member);
        self.after(PATIENCE, ApplicationEvent::Store { store, work });
    }

    /// Nobody holds what a process that has ended has stored, except these objects.
    pub(super) fn forget_maker(&mut self, store: RankId, maker: RankId, keep: Vec<ObjectId>) {
        let Some(simulated) = self.stores.get_mut(&store) else { return };
        if !simulated.ended.contains(&maker) {
            simulated.forgotten.insert(maker, keep);
            return;
        }
        let is_ignored = self.plant == Some(ApplicationBug::FreedWithMaker);
        let keep: BTreeSet<ObjectId> = keep.into_iter().filter(|_| !is_ignored).collect();
        if self.plant != Some(ApplicationBug::ForgottenMaker) {
            self.drive_store(store, |it, effects| it.forget(maker, &keep, effects));
        }
    }

    pub(super) fn store_works(&mut self, store: RankId, work: StoreWork) {
        let Some(simulated) = self.stores.get_mut(&store) else { return };
        match work {
            StoreWork::Spilled(object, result) => {
                if result == TransferResult::Done {
                    simulated.disk.insert(object);
                }
                self.drive_store(store, |it, effects| it.spilled(object, result, effects));
            }
            StoreWork::BroughtBack(object, result) => {
                if result == TransferResult::Done {
                    simulated.memory.insert(object);
                }
                self.drive_store(store, |it, effects| it.brought_back(object, result, effects));
            }
            StoreWork::TimedOut(object, by) => {
                self.drive_store(store, |it, effects| it.timed_out(object, by, effects));
            }
        }
    }

    pub(super) fn drive_store<R>(
        &mut self,
        store: RankId,
        act: impl FnOnce(&mut ObjectStore, &mut Vec<ObjectStoreEffect>) -> R,
    ) {
        let mut effects = Vec::new();
        let Some(simulated) = self.stores.get_mut(&store) else { return };
        act(&mut simulated.core, &mut effects);
        if let Err(text) = simulated.core.check() {
            self.ledger.violated(text);
        }
        for effect in effects {
            self.digest.record_event(self.now, &effect);
            self.recorder.add(self.now, || format!("store {store}: {effect:?}"));
            self.carry_out_in_store(store, effect);
        }
    }

    fn carry_out_in_store(&mut self, store: RankId, effect: ObjectStoreEffect) {
        let Some(simulated) = self.stores.get_mut(&store) else { return };
        match effect {
            ObjectStoreEffect::Allocate { object, bytes: _, maker } => {
                simulated.memory.insert(object);
                self.store_replies(store, maker, StoreAnswer::Allocated(object));
            }
            ObjectStoreEffect::HandOver { object, to } => {
                if !simulated.memory.contains(&object) {
                    self.ledger.violated(format!("object {object} is handed over and is not in memory"));
                }
                self.check_content(store, object);
                self.store_replies(store, to, StoreAnswer::HandOver(object));
            }
            ObjectStoreEffect::Spill { object } => {
                self.counters.spills += 1;
                let result = self.transfer_result();
                let work = StoreWork::Spilled(object, result);
                self.after(TRANSFER, ApplicationEvent::Store { store, work });
            }
            ObjectStoreEffect::BringBack { object } => {
                // What cannot be read back is lost: that is for the tests of the store.
                let work = StoreWork::BroughtBack(object, TransferResult::Done);
                self.after(TRANSFER, ApplicationEvent::Store { store, work });
            }
            ObjectStoreEffect::Drop { object, place } => self.drop_place(store, object, place),
            ObjectStoreEffect::Refuse { object, to, reason } => {
                self.store_replies(store, to, StoreAnswer::Refused(object, reason));
            }
            ObjectStoreEffect::AwaitFetch { .. }
            | ObjectStoreEffect::Ask { .. }
            | ObjectStoreEffect::Fetch { .. }
            | ObjectStoreEffect::FetchSettled { .. }
            | ObjectStoreEffect::CopyDropped { .. }
            | ObjectStoreEffect::Lose { .. } => self.carry_out_for_others(store, effect),
        }
    }

    /// What has to do with the stores of other nodes.
    fn carry_out_for_others(&mut self, store: RankId, effect: ObjectStoreEffect) {
        if !self.nodes.are_several() {
            self.ledger.violated(format!("the only store looks for an object elsewhere: {effect:?}"));
        }
        match effect {
            ObjectStoreEffect::AwaitFetch { object, to } => {
                self.store_replies(store, to, StoreAnswer::Fetching(object));
            }
            ObjectStoreEffect::Ask { object } => self.store_says(store, FromStore::Wants { object }),
            ObjectStoreEffect::Fetch { object, bytes: _ } => self.begin_fetch(store, object),
            ObjectStoreEffect::FetchSettled { object } => {
                self.store_says(store, FromStore::Fetched { object, result: Ok(()) });
            }
            ObjectStoreEffect::CopyDropped { object } => {
                self.counters.dropped_copies += 1;
                self.store_says(store, FromStore::Dropped { object });
            }
            ObjectStoreEffect::Lose { object, to, error } => {
                self.store_replies(store, to, StoreAnswer::Lost(object, error));
            }
            ObjectStoreEffect::Allocate { .. }
            | ObjectStoreEffect::HandOver { .. }
            | ObjectStoreEffect::Spill { .. }
            | ObjectStoreEffect::BringBack { .. }
            | ObjectStoreEffect::Drop { .. }
            | ObjectStoreEffect::Refuse { .. } => {}
        }
    }

    fn drop_place(&mut self, store: RankId, object: ObjectId, place: ObjectPlace) {
        let Some(simulated) = self.stores.get_mut(&store) else { return };
        let had = match place {
            ObjectPlace::Memory => simulated.memory.remove(&object),
            ObjectPlace::Disk => simulated.disk.remove(&object),
        };
        simulated.forget_content(object);
        if !had {
            self.ledger.violated(format!("object {object} is dropped and is not in its {place:?}"));
        }
    }

    /// What is handed over has the value that its maker gave it.
    fn check_content(&mut self, store: RankId, object: ObjectId) {
        let content = self.stores.get(&store).and_then(|it| it.content(object));
        if content != self.objects.payload(object).as_ref() {
            let text = format!("object {object} is {content:?} in store {store}");
            self.ledger.violated(text);
        }
    }

    fn transfer_result(&mut self) -> TransferResult {
        if self.random.chance(0.1) { TransferResult::Failed } else { TransferResult::Done }
    }

    fn store_replies(&mut self, store: RankId, member: RankId, reply: StoreAnswer) {
        let Some(at) = self.store_arrival(store, member, 1) else { return };
        self.queue.put(at, ApplicationEvent::StoreReplies { member, store, reply });
    }

    /// What is left in the stores although nobody holds anything.
    pub(super) fn find_in_store(&self) -> Option<String> {
        self.stores.iter().find_map(|(store, simulated)| {
            let SimulatedStore { core, memory, disk, .. } = simulated;
            let is_empty = core.is_empty() && memory.is_empty() && disk.is_empty();
            (!is_empty).then(|| {
                format!(
                    "the store keeps {memory:?} in memory and {disk:?} on disk, that of {store}: {core:?}"
                )
            })
        })
    }
}
