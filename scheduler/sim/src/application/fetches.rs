//! How objects travel between the stores of nodes: the fetches that are under way, and how they end.

use bytes::Bytes;
use cohabit_application_core::{FetchFailure, FromStore, NodeNumber, ObjectId, TransferResult};
use cohabit_types::{RankId, Span};

use super::event::ApplicationEvent;
use super::node_index::NodeIndex;
use super::planted_bug::ApplicationBug;
use super::simulated_fetch::SimulatedFetch;
use super::world::ApplicationWorld;

/// How long a fetch takes, and how long it takes to notice that it has failed.
const FETCH: (Span, Span) = (Span::from_micros(200), Span::from_secs(2));
/// A store serves so many fetches at a time.
const MOST_SERVED: usize = 2;

impl ApplicationWorld {
    /// The store of a node has room for an object of another node, and fetches it.
    pub(super) fn begin_fetch(&mut self, to: RankId, object: ObjectId) {
        self.counters.fetches += 1;
        let Some(store) = self.stores.get_mut(&to) else { return };
        store.memory.insert(object);
        let Some(from) = store.sources.get(&object).copied() else {
            return self.ledger.violated(format!("store {to} fetches {object} and was not told to"));
        };
        let node = self.nodes.numbered(from);
        self.check_address(to, from, node);
        let source = node.and_then(|node| self.nodes.store(node));
        let content = self.content_for(to, source, object);
        let from = source.unwrap_or(to);
        self.fetches.last += 1;
        let number = self.fetches.last;
        let served = self.fetches.fetches.values().filter(|it| it.from == from && it.content.is_ok()).count();
        if content.is_ok() && served >= MOST_SERVED {
            self.ledger.violated(format!("store {from} serves {} fetches at a time", served + 1));
        }
        self.fetches.fetches.insert(number, SimulatedFetch { object, from, to, content });
        let at = self.now + self.nodes.random.span(FETCH);
        self.queue.put(at, ApplicationEvent::FetchEnds(number));
        if self.plant == Some(ApplicationBug::UncountedFetches) {
            self.store_says(to, FromStore::Fetched { object, result: Ok(()) });
        }
    }

    /// What a source answers to a fetch.
    fn content_for(
        &mut self,
        to: RankId,
        source: Option<RankId>,
        object: ObjectId,
    ) -> Result<Bytes, FetchFailure> {
        let Some(source) = source else { return Err("the connection was refused".to_owned().into()) };
        if self.nodes.keep_apart(to, source) {
            return Err("the connection timed out".to_owned().into());
        }
        if source == to {
            // The coordinator asks whether it has it.
            return Err(FetchFailure::Missing);
        }
        if self.nodes.random.chance(0.03) {
            return Err("the connection broke".to_owned().into());
        }
        let store = self.stores.get_mut(&source);
        let content = store.and_then(|it| {
            it.core.served(object);
            it.content(object).cloned()
        });
        content.ok_or(FetchFailure::Missing)
    }

    /// A store knows where to fetch from.
    fn check_address(&mut self, to: RankId, from: NodeNumber, node: Option<NodeIndex>) {
        let Some(process) = self.processes.get(&to) else { return };
        if process.core.node() == from {
            return;
        }
        let known = process.core.address_of(from).map(|at| at.address.clone());
        if known != node.map(NodeIndex::name) {
            self.ledger.violated(format!("store {to} takes {known:?} for the address of node {from}"));
        }
    }

    pub(super) fn fetch_ends(&mut self, number: u64) {
        let Some(SimulatedFetch { object, to, content, .. }) = self.fetches.fetches.remove(&number) else {
            return;
        };
        let result = content.as_ref().map(|_| ()).map_err(Clone::clone);
        self.counters.failed_fetches += u64::from(content.is_err());
        let Some(store) = self.stores.get_mut(&to) else { return };
        let is_done = content.is_ok();
        if let Ok(content) = content {
            store.fill(object, content);
        }
        if self.plant != Some(ApplicationBug::UncountedFetches) {
            self.store_says(to, FromStore::Fetched { object, result });
        } else if !is_done {
            self.store_says(to, FromStore::Dropped { object });
            self.store_says(to, FromStore::Wants { object });
        }
        let transfer = if is_done { TransferResult::Done } else { TransferResult::Failed };
        self.drive_store(to, |it, effects| it.fetched(object, transfer, effects));
    }

    /// What is fetched from or by a store that has ended does not arrive.
    pub(super) fn break_fetches_of(&mut self, store: RankId) {
        self.fetches.fetches.retain(|_, fetch| fetch.to != store);
        for fetch in self.fetches.fetches.values_mut().filter(|it| it.from == store) {
            fetch.content = Err("the connection broke".to_owned().into());
        }
    }

    pub(super) fn break_fetches_between(&mut self, one: NodeIndex, other: NodeIndex) {
        let nodes = &self.nodes;
        let between = |fetch: &&mut SimulatedFetch| {
            let ends = (nodes.of(fetch.from), nodes.of(fetch.to));
            ends == (one, other) || ends == (other, one)
        };
        for fetch in self.fetches.fetches.values_mut().filter(between) {
            fetch.content = Err("the connection broke".to_owned().into());
        }
    }
}
