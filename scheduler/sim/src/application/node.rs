//! The simulated nodes: what runs on which, and which of them reach each other.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_application_core::NodeNumber;
use cohabit_types::{RankId, Rendezvous};

use super::event::HeadEvent;
use super::node_index::NodeIndex;
use crate::random::Random;

/// All nodes.
#[derive(Debug)]
pub(super) struct SimulatedNodes {
    nodes: Vec<SimulatedNode>,
    placed: BTreeMap<RankId, NodeIndex>,
    /// How many faults keep two nodes apart, the smaller one first.
    cuts: BTreeMap<(NodeIndex, NodeIndex), u32>,
    /// The nodes as the coordinator counts them.
    numbers: BTreeMap<NodeNumber, NodeIndex>,
    /// For what has to do with several nodes: runs with one are as they would be without this.
    pub(super) random: Random,
}

/// A node.
#[derive(Debug, Default)]
struct SimulatedNode {
    /// The process that serves its objects, if one lives.
    store: Option<RankId>,
    /// What the head orders or learns once it reaches the node again.
    postponed: Vec<HeadEvent>,
    /// Counts the times at which the head did not reach it.
    outages: u32,
    /// The head is certain that all its processes have ended.
    is_given_up: bool,
}

impl SimulatedNodes {
    pub(super) fn new(own: RankId, count: usize, random: Random) -> SimulatedNodes {
        let mut nodes: Vec<SimulatedNode> = (0..count).map(|_| SimulatedNode::default()).collect();
        nodes[0].store = Some(own);
        SimulatedNodes {
            nodes,
            placed: BTreeMap::from([(own, NodeIndex::FIRST)]),
            cuts: BTreeMap::new(),
            numbers: BTreeMap::from([(NodeNumber(0), NodeIndex::FIRST)]),
            random,
        }
    }

    pub(super) const fn are_several(&self) -> bool {
        self.nodes.len() > 1
    }

    /// The nodes that are not the coordinator's.
    pub(super) fn further(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (1..self.nodes.len()).map(NodeIndex)
    }

    /// The node on which a process runs or ran.
    pub(super) fn of(&self, member: RankId) -> NodeIndex {
        self.placed.get(&member).copied().unwrap_or(NodeIndex::FIRST)
    }

    pub(super) fn place(&mut self, member: RankId, node: NodeIndex) {
        self.placed.insert(member, node);
    }

    /// A node that the head reaches, for a process that can run anywhere.
    pub(super) fn draw(&mut self) -> NodeIndex {
        let reached: Vec<NodeIndex> = self.all().filter(|node| self.is_reached(*node)).collect();
        if reached.len() > 1 { *self.random.pick(&reached) } else { NodeIndex::FIRST }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (0..self.nodes.len()).map(NodeIndex)
    }

    /// Whether the head reaches a node, and the coordinator too.
    pub(super) fn is_reached(&self, node: NodeIndex) -> bool {
        !self.are_apart(NodeIndex::FIRST, node)
    }

    pub(super) fn are_apart(&self, one: NodeIndex, other: NodeIndex) -> bool {
        self.cuts.contains_key(&sorted(one, other))
    }

    /// Whether these two processes run on nodes that do not reach each other.
    pub(super) fn keep_apart(&self, one: RankId, other: RankId) -> bool {
        self.are_apart(self.of(one), self.of(other))
    }

    pub(super) fn cut(&mut self, one: NodeIndex, other: NodeIndex) {
        *self.cuts.entry(sorted(one, other)).or_insert(0) += 1;
    }

    pub(super) fn join(&mut self, one: NodeIndex, other: NodeIndex) {
        let pair = sorted(one, other);
        if let Some(count) = self.cuts.get_mut(&pair) {
            *count -= 1;
            if *count == 0 {
                self.cuts.remove(&pair);
            }
        }
    }

    /// The process that serves the objects of a node.
    pub(super) fn store(&self, node: NodeIndex) -> Option<RankId> {
        self.nodes[node.0].store
    }

    pub(super) fn set_store(&mut self, node: NodeIndex, store: Option<RankId>) {
        self.nodes[node.0].store = store;
    }

    pub(super) fn postpone(&mut self, node: NodeIndex, event: HeadEvent) {
        self.nodes[node.0].postponed.push(event);
    }

    pub(super) fn take_postponed(&mut self, node: NodeIndex) -> Vec<HeadEvent> {
        std::mem::take(&mut self.nodes[node.0].postponed)
    }

    /// The head does not reach a node from now on: the number of this outage.
    pub(super) fn begin_outage(&mut self, node: NodeIndex) -> u32 {
        let node = &mut self.nodes[node.0];
        node.outages += 1;
        node.outages
    }

    /// Whether an outage has not ended.
    pub(super) fn lasts(&self, node: NodeIndex, outage: u32) -> bool {
        self.nodes[node.0].outages == outage && !self.is_reached(node)
    }

    pub(super) fn set_given_up(&mut self, node: NodeIndex, is_given_up: bool) {
        self.nodes[node.0].is_given_up = is_given_up;
    }

    /// Whether the head knows what happens on a node, or is certain that nothing does.
    pub(super) fn is_known(&self, node: NodeIndex) -> bool {
        self.is_reached(node) || self.nodes[node.0].is_given_up
    }

    pub(super) fn number(&mut self, number: NodeNumber, node: NodeIndex) {
        self.numbers.insert(number, node);
    }

    /// The node that the coordinator has given this number.
    pub(super) fn numbered(&self, number: NodeNumber) -> Option<NodeIndex> {
        self.numbers.get(&number).copied()
    }

    pub(super) fn named(&self, name: &str) -> Option<NodeIndex> {
        self.all().find(|node| node.name() == name)
    }

    /// All processes that were ever on a node.
    pub(super) fn processes_of(&self, node: NodeIndex) -> BTreeSet<RankId> {
        self.placed.iter().filter(|(_, it)| **it == node).map(|(member, _)| *member).collect()
    }

    /// Where the process that serves the objects of a node listens: each one at a port of its own.
    pub(super) fn address(&self, store: RankId) -> Rendezvous {
        let port = 10_000 + store.job().number as u16 * 100 + store.attempt.attempt as u16;
        Rendezvous { address: self.of(store).name(), port }
    }
}

fn sorted(one: NodeIndex, other: NodeIndex) -> (NodeIndex, NodeIndex) {
    (one.min(other), one.max(other))
}
