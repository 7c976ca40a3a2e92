//! Nodes that others do not reach for a while, that are lost with all that runs there, and what the head
//! makes of it.

use cohabit_types::{RankId, Span, Time};

use super::event::{ApplicationEvent, ApplicationFault, Pair};
use super::node_index::NodeIndex;
use super::process::ProcessCode;
use super::world::ApplicationWorld;

/// How long nodes do not reach each other.
const OUTAGE: (Span, Span) = (Span::from_millis(20), Span::from_secs(40));
/// So long after the head was reached last, a node ends its processes.
const GRACE: Span = Span::from_secs(15);
/// So long after the head has reached a node last, it is certain that they have ended.
const LOST_AFTER: Span = Span::from_secs(20);

/// How soon processes want to read their objects after a fault.
const READING: (Span, Span) = (Span::from_millis(1), Span::from_secs(12));

impl ApplicationWorld {
    /// Draws the faults of nodes before the end of the faults.
    pub(super) fn draw_node_faults(&mut self) {
        if !self.nodes.are_several() {
            return;
        }
        let length = self.quiet_at.since(Time::EPOCH).as_micros();
        let kinds = [
            (ApplicationFault::CutNode, 0.6, 4),
            (ApplicationFault::CutPair, 0.5, 4),
            (ApplicationFault::KillStore, 0.6, 4),
            (ApplicationFault::LoseNode, 0.3, 2),
        ];
        for (fault, chance, most) in kinds {
            let random = &mut self.nodes.random;
            let count = if random.chance(chance) { random.between(1, most) } else { 0 };
            for _ in 0..count {
                let at = Time::EPOCH + Span::from_micros(self.nodes.random.between(0, length));
                self.queue.put(at, ApplicationEvent::Fault(fault));
            }
        }
    }

    /// Some node is cut off from all others.
    pub(super) fn cut_some_node(&mut self) {
        if let Some(node) = self.some_reached_node() {
            self.counters.cuts += 1;
            let length = self.nodes.random.span(OUTAGE);
            self.begin_outage(node, Some(length));
            self.read_after_fault();
        }
    }

    /// All processes of some node end at once, and nobody is told. Perhaps the node is started again.
    pub(super) fn lose_some_node(&mut self) {
        let Some(node) = self.some_reached_node() else { return };
        self.counters.lost_nodes += 1;
        let length = self.nodes.random.span(OUTAGE);
        let comes_back = self.nodes.random.chance(0.5);
        self.begin_outage(node, comes_back.then_some(length));
        self.end_all_of(node);
        self.read_after_fault();
    }

    /// Two further nodes do not reach each other.
    pub(super) fn cut_some_pair(&mut self) {
        let nodes: Vec<NodeIndex> = self.nodes.further().collect();
        if let [one, other, ..] = nodes[..] {
            self.counters.cuts += 1;
            self.cut(one, other);
            let at = self.now + self.nodes.random.span(OUTAGE);
            self.queue.put(at, ApplicationEvent::JoinNodes(one, other));
        }
    }

    pub(super) fn kill_some_store(&mut self) {
        let stores = self.processes.iter().filter(|(_, it)| it.code == ProcessCode::Store);
        let stores: Vec<RankId> = stores.map(|(member, _)| *member).collect();
        if !stores.is_empty() {
            let store = *self.nodes.random.pick(&stores);
            self.counters.store_kills += 1;
            self.kill(store, 137);
            self.read_after_fault();
        }
    }

    /// After a fault that objects may be lost by, processes want to read theirs.
    fn read_after_fault(&mut self) {
        let readers = self.processes.iter().filter(|(_, it)| !it.handles.is_empty());
        let readers: Vec<RankId> = readers.map(|(member, _)| *member).collect();
        for member in readers {
            let at = self.now + self.nodes.random.span(READING);
            self.queue.put(at, ApplicationEvent::ReadAll(member));
        }
    }

    fn some_reached_node(&mut self) -> Option<NodeIndex> {
        let reached: Vec<NodeIndex> =
            self.nodes.further().filter(|node| self.nodes.is_reached(*node)).collect();
        (!reached.is_empty()).then(|| *self.nodes.random.pick(&reached))
    }

    /// A node is cut off from all others and from the head, for ever if `length` is none.
    fn begin_outage(&mut self, node: NodeIndex, length: Option<Span>) {
        let outage = self.nodes.begin_outage(node);
        for other in self.nodes.all().filter(|other| *other != node) {
            self.cut(node, other);
        }
        if length.is_none_or(|length| length > GRACE) {
            self.queue.put(self.now + GRACE, ApplicationEvent::NodeEnds(node, outage));
        }
        if length.is_none_or(|length| length > LOST_AFTER) {
            self.queue.put(self.now + LOST_AFTER, ApplicationEvent::GiveUpNode(node, outage));
        }
        if let Some(length) = length {
            self.queue.put(self.now + length, ApplicationEvent::NodeReturns(node));
        }
    }

    /// A node has not reached the head for too long, and ends what runs there.
    pub(super) fn node_ends(&mut self, node: NodeIndex, outage: u32) {
        if self.nodes.lasts(node, outage) {
            self.end_all_of(node);
        }
    }

    /// The head is certain that nothing runs on a node any more.
    pub(super) fn give_up_node(&mut self, node: NodeIndex, outage: u32) {
        if self.nodes.lasts(node, outage) {
            self.nodes.set_given_up(node, true);
            self.catch_up(node);
        }
    }

    /// The others reach a node again, and so does the head.
    pub(super) fn node_returns(&mut self, node: NodeIndex) {
        for other in self.nodes.all().filter(|other| *other != node) {
            self.nodes.join(node, other);
        }
        self.nodes.set_given_up(node, false);
        self.catch_up(node);
        self.place_again();
    }

    fn catch_up(&mut self, node: NodeIndex) {
        for event in self.nodes.take_postponed(node) {
            self.head_soon(event);
        }
    }

    fn end_all_of(&mut self, node: NodeIndex) {
        for member in self.nodes.processes_of(node) {
            self.kill(member, 137);
        }
    }

    /// Two nodes do not reach each other from now on: what is under way between them is lost.
    fn cut(&mut self, one: NodeIndex, other: NodeIndex) {
        self.nodes.cut(one, other);
        let nodes = &self.nodes;
        let is_between = |pair: &Pair| {
            let ends = (nodes.of(pair.dialer), nodes.of(pair.acceptor));
            ends == (one, other) || ends == (other, one)
        };
        let channels = self.network.channels.iter().filter(|(pair, _)| is_between(pair));
        let links: Vec<_> =
            channels.flat_map(|(pair, it)| it.unbroken().into_iter().map(|link| (*pair, link))).collect();
        links.into_iter().for_each(|(pair, link)| self.break_connection(pair, link));
        self.break_fetches_between(one, other);
    }
}
