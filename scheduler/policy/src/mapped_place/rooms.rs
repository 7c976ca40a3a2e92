//! How many devices of each node have room for a demand: counted once, and again only where a node changed.
//!
//! In a large cluster many jobs ask for the same, and between two of them hardly any node changes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cohabit_types::Demand;

use crate::NodeView;

/// So many demands are kept.
const MOST: usize = 64;

/// Counts by demand, in the order of the nodes.
#[derive(Debug, Clone)]
pub(super) struct Rooms {
    trust: Trust,
    counts: BTreeMap<Demand, Vec<u32>>,
}

/// Whether every change is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    Kept,
    None,
}

impl Rooms {
    pub(super) const fn new() -> Rooms {
        Rooms { trust: Trust::None, counts: BTreeMap::new() }
    }

    /// Begins anew.
    pub(super) fn forget(&mut self, trust: Trust) {
        self.trust = trust;
        self.counts.clear();
    }

    /// The nodes at these positions have changed.
    pub(super) fn look_again(&mut self, nodes: &[NodeView], changed: &[usize]) {
        for (demand, counts) in &mut self.counts {
            changed.iter().for_each(|position| counts[*position] = room(&nodes[*position], demand));
        }
    }

    /// For each of these nodes.
    pub(super) fn of(&mut self, demand: &Demand, nodes: &[NodeView]) -> Cow<'_, [u32]> {
        let count = || nodes.iter().map(|node| room(node, demand)).collect::<Vec<u32>>();
        if self.trust == Trust::None {
            return Cow::Owned(count());
        }
        if self.counts.len() >= MOST && !self.counts.contains_key(demand) {
            self.counts.clear();
        }
        let counts = self.counts.entry(*demand).or_insert_with(count);
        debug_assert!(counts.iter().copied().eq(count()), "a node changed, and nobody told");
        Cow::Borrowed(counts)
    }
}

/// How many devices of the node have room for the demand.
pub(super) fn room(node: &NodeView, demand: &Demand) -> u32 {
    node.roomy_devices(demand).unwrap_or(0)
}
