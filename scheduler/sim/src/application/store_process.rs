//! The processes of stores: they come and go, and talk with the coordinator.

use cohabit_application_core::{FetchFailure, FromStore, NodeNumber, ObjectId, ToStore};
use cohabit_types::{RankId, Span, Time};

use super::event::ApplicationEvent;
use super::planted_bug::ApplicationBug;
use super::simulated_store::{SimulatedStore, StoreCall};
use super::world::ApplicationWorld;

/// How long the coordinator and the store in its process take to hear each other.
const CHANNEL_DELAY: (Span, Span) = (Span::from_micros(1), Span::from_millis(1));

impl ApplicationWorld {
    /// The process of the store of a further node is there: it listens, and those of its node connect to it.
    pub(super) fn start_store(&mut self, store: RankId) {
        let node = self.nodes.of(store);
        self.stores.insert(store, SimulatedStore::new(self.store_budget));
        self.nodes.set_store(node, Some(store));
        let at = self.nodes.address(store);
        self.store_says(store, FromStore::Listens { at });
        for member in self.nodes.processes_of(node) {
            self.ask_again(member);
        }
    }

    /// The store of a further node has ended, and what was in it is lost.
    pub(super) fn end_store(&mut self, store: RankId) {
        let node = self.nodes.of(store);
        if self.nodes.store(node) == Some(store) {
            self.nodes.set_store(node, None);
        }
        self.stores.remove(&store);
        self.places.store_died(store);
        self.break_fetches_of(store);
    }

    /// A process asks the next store for what it waits for.
    fn ask_again(&mut self, member: RankId) {
        let Some(process) = self.processes.get(&member) else { return };
        let storing = process.storing.iter();
        let reserve = storing.map(|(object, it)| StoreCall::making(*object, it));
        let want = process.reading.iter().map(|(_, object)| StoreCall::Want(*object));
        let requests: Vec<StoreCall> = reserve.chain(want).collect();
        requests.into_iter().for_each(|request| self.ask_store(member, request));
    }

    /// The coordinator says something to the store in its own process.
    pub(super) fn tell_own_store(&mut self, frame: ToStore) {
        if self.nodes.are_several() {
            let at = self.own_store_arrival(0);
            self.queue.put(at, ApplicationEvent::OwnStoreHears(frame));
        } else {
            self.store_hears(self.own, frame);
        }
    }

    fn own_store_arrival(&mut self, direction: usize) -> Time {
        let at = self.now + self.nodes.random.span(CHANNEL_DELAY);
        let last = &mut self.own_store_arrivals[direction];
        *last = at.max(*last);
        *last
    }

    /// A store hears from the coordinator.
    pub(super) fn store_hears(&mut self, store: RankId, frame: ToStore) {
        match frame {
            ToStore::Free { object } => {
                let is_copy = self.places.is_copy(store, object);
                if !is_copy || self.plant != Some(ApplicationBug::CopyKeptAfterFree) {
                    self.drive_store(store, |it, effects| it.free(object, effects));
                }
            }
            ToStore::Keep { object } => self.drive_store(store, |it, _| it.keep(object)),
            ToStore::Forget { maker, keep } => self.forget_maker(store, maker, keep),
            ToStore::Fetch { object, bytes, from } => self.told_to_fetch(store, object, bytes, from),
            ToStore::Lost { object, error } => {
                self.drive_store(store, |it, effects| it.lost(object, &error, effects));
            }
            ToStore::Tell { request } => {
                let Some(simulated) = self.stores.get(&store) else { return };
                let figures = simulated.core.figures();
                self.store_says(store, FromStore::Told { request, figures });
            }
        }
    }

    /// A store is told to fetch an object. If that is from its own node, the coordinator believes that it has
    /// it.
    fn told_to_fetch(&mut self, store: RankId, object: ObjectId, bytes: u64, from: NodeNumber) {
        let is_own = self.nodes.numbered(from) == Some(self.nodes.of(store));
        let Some(simulated) = self.stores.get_mut(&store) else { return };
        if is_own && !simulated.core.has(object) {
            let result = Err(FetchFailure::Missing);
            return self.store_says(store, FromStore::Fetched { object, result });
        }
        simulated.sources.insert(object, from);
        self.drive_store(store, |it, effects| it.fetch(object, bytes, effects));
    }

    /// A store says something to the coordinator.
    pub(super) fn store_says(&mut self, store: RankId, frame: FromStore) {
        if store == self.own {
            let at = self.own_store_arrival(1);
            self.queue.put(at, ApplicationEvent::OwnStoreSays(frame));
        } else {
            self.drive(store, |it, effects| it.core.from_store(frame, effects));
        }
    }
}
