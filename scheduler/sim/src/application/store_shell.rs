//! The store of the simulated node: the production core, with memory and a disk that take their time.
//!
//! Each process has a connection to it on which messages keep their order and that ends with the process.

use std::collections::BTreeSet;

use cohabit_application_core::{
    ObjectId, ObjectKind, ObjectPlace, ObjectStore, ObjectStoreEffect, TransferResult,
};
use cohabit_types::{AttemptId, Span, Time};

use super::event::ApplicationEvent;
use super::planted_bug::ApplicationBug;
use super::simulated_store::{SimulatedStore, StoreAnswer, StoreCall, StoreWork};
use super::world::ApplicationWorld;

const LINK_DELAY: (Span, Span) = (Span::from_micros(1), Span::from_millis(5));
const TRANSFER: (Span, Span) = (Span::from_micros(100), Span::from_millis(500));
/// How long somebody waits for room.
const PATIENCE: (Span, Span) = (Span::from_secs(2), Span::from_secs(30));

impl ApplicationWorld {
    pub(super) fn ask_store(&mut self, member: AttemptId, request: StoreCall) {
        let at = self.store_arrival(member, 0);
        self.queue.put(at, ApplicationEvent::AskStore { member, request });
    }

    /// A message arrives after all before it.
    fn store_arrival(&mut self, member: AttemptId, direction: usize) -> Time {
        let at = self.now + self.random.span(LINK_DELAY);
        let last = &mut self.store.arrivals.entry(member).or_insert([Time::EPOCH; 2])[direction];
        *last = at.max(*last);
        *last
    }

    pub(super) fn store_receives(&mut self, member: AttemptId, request: StoreCall) {
        match request {
            StoreCall::Reserve { object, bytes } => {
                self.drive_store(|it, effects| {
                    it.reserve(object, bytes, ObjectKind::Primary, member, effects);
                });
                self.after(PATIENCE, ApplicationEvent::Store(StoreWork::TimedOut(object, member)));
            }
            StoreCall::Filled(object) => {
                self.drive_store(|it, effects| it.filled(object, effects));
                self.store_replies(member, StoreAnswer::Stored(object));
            }
            StoreCall::Want(object) => {
                self.drive_store(|it, effects| it.wanted(object, member, effects));
                self.after(PATIENCE, ApplicationEvent::Store(StoreWork::TimedOut(object, member)));
            }
            StoreCall::Unmapped(object) => {
                self.drive_store(|it, effects| it.unmapped(object, member, effects));
            }
            StoreCall::Ended => {
                self.store.ended.insert(member);
                self.drive_store(|it, effects| it.member_ended(member, effects));
                if let Some(keep) = self.store.forgotten.remove(&member) {
                    self.forget_maker(member, keep);
                }
            }
        }
    }

    /// Nobody holds what a process that has ended has stored, except these objects.
    pub(super) fn forget_maker(&mut self, maker: AttemptId, keep: Vec<ObjectId>) {
        if !self.store.ended.contains(&maker) {
            self.store.forgotten.insert(maker, keep);
            return;
        }
        let is_ignored = self.plant == Some(ApplicationBug::FreedWithMaker);
        let keep: BTreeSet<ObjectId> = keep.into_iter().filter(|_| !is_ignored).collect();
        if self.plant != Some(ApplicationBug::ForgottenMaker) {
            self.drive_store(|it, effects| it.forget(maker, &keep, effects));
        }
    }

    pub(super) fn store_works(&mut self, work: StoreWork) {
        match work {
            StoreWork::Spilled(object, result) => {
                if result == TransferResult::Done {
                    self.store.disk.insert(object);
                }
                self.drive_store(|it, effects| it.spilled(object, result, effects));
            }
            StoreWork::BroughtBack(object, result) => {
                if result == TransferResult::Done {
                    self.store.memory.insert(object);
                }
                self.drive_store(|it, effects| it.brought_back(object, result, effects));
            }
            StoreWork::TimedOut(object, by) => {
                self.drive_store(|it, effects| it.timed_out(object, by, effects));
            }
        }
    }

    pub(super) fn drive_store(&mut self, act: impl FnOnce(&mut ObjectStore, &mut Vec<ObjectStoreEffect>)) {
        let mut effects = Vec::new();
        act(&mut self.store.core, &mut effects);
        if let Err(text) = self.store.core.check() {
            self.ledger.violated(text);
        }
        for effect in effects {
            self.digest.record_event(self.now, &effect);
            self.recorder.add(self.now, || format!("store: {effect:?}"));
            self.carry_out_in_store(effect);
        }
    }

    fn carry_out_in_store(&mut self, effect: ObjectStoreEffect) {
        match effect {
            ObjectStoreEffect::Allocate { object, bytes: _, maker } => {
                self.store.memory.insert(object);
                self.store_replies(maker, StoreAnswer::Allocated(object));
            }
            ObjectStoreEffect::HandOver { object, to } => {
                if !self.store.memory.contains(&object) {
                    self.ledger.violated(format!("object {object} is handed over and is not in memory"));
                }
                self.store_replies(to, StoreAnswer::HandOver(object));
            }
            ObjectStoreEffect::Spill { object } => {
                self.counters.spills += 1;
                let result = self.transfer_result();
                self.after(TRANSFER, ApplicationEvent::Store(StoreWork::Spilled(object, result)));
            }
            ObjectStoreEffect::BringBack { object } => {
                // What cannot be read back is lost: that is for the tests of the store.
                let back = StoreWork::BroughtBack(object, TransferResult::Done);
                self.after(TRANSFER, ApplicationEvent::Store(back));
            }
            ObjectStoreEffect::Drop { object, place } => {
                let had = match place {
                    ObjectPlace::Memory => self.store.memory.remove(&object),
                    ObjectPlace::Disk => self.store.disk.remove(&object),
                };
                if !had {
                    self.ledger.violated(format!("object {object} is dropped and is not in its {place:?}"));
                }
            }
            ObjectStoreEffect::Refuse { object, to, reason } => {
                self.store_replies(to, StoreAnswer::Refused(object, reason));
            }
        }
    }

    fn transfer_result(&mut self) -> TransferResult {
        if self.random.chance(0.1) { TransferResult::Failed } else { TransferResult::Done }
    }

    fn store_replies(&mut self, member: AttemptId, reply: StoreAnswer) {
        let at = self.store_arrival(member, 1);
        self.queue.put(at, ApplicationEvent::StoreReplies { member, reply });
    }

    /// What is left in the store although nobody holds anything.
    pub(super) fn find_in_store(&self) -> Option<String> {
        let SimulatedStore { core, memory, disk, .. } = &self.store;
        let is_empty = core.is_empty() && memory.is_empty() && disk.is_empty();
        (!is_empty).then(|| format!("the store keeps {memory:?} in memory and {disk:?} on disk"))
    }
}
