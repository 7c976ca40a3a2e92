//! How many devices of each node fit a demand: counted once, and again only where a node changed.
//!
//! In a large cluster many jobs have the same demand, and between two of them hardly any node changes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cohabit_types::Demand;

use crate::NodeView;

/// Demands whose counts are kept.
const MAX_CACHED_DEMANDS: usize = 64;

/// Counts by demand, in the order of the nodes.
#[derive(Debug, Clone)]
pub(super) struct FreeDeviceCounts {
    trust: ChangeTracking,
    counts: BTreeMap<Demand, Vec<u32>>,
}

/// Whether every change is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeTracking {
    Kept,
    None,
}

impl FreeDeviceCounts {
    pub(super) const fn new() -> FreeDeviceCounts {
        FreeDeviceCounts { trust: ChangeTracking::None, counts: BTreeMap::new() }
    }

    /// Drops all counts.
    pub(super) fn forget(&mut self, trust: ChangeTracking) {
        self.trust = trust;
        self.counts.clear();
    }

    /// Counts the nodes at these positions again.
    pub(super) fn recount(&mut self, nodes: &[NodeView], changed: &[usize]) {
        for (demand, counts) in &mut self.counts {
            changed.iter().for_each(|position| counts[*position] = count_fitting(&nodes[*position], demand));
        }
    }

    /// The count of each of these nodes.
    pub(super) fn of(&mut self, demand: &Demand, nodes: &[NodeView]) -> Cow<'_, [u32]> {
        let count = || nodes.iter().map(|node| count_fitting(node, demand)).collect::<Vec<u32>>();
        if self.trust == ChangeTracking::None {
            return Cow::Owned(count());
        }
        if self.counts.len() >= MAX_CACHED_DEMANDS && !self.counts.contains_key(demand) {
            self.counts.clear();
        }
        let counts = self.counts.entry(*demand).or_insert_with(count);
        debug_assert!(counts.iter().copied().eq(count()), "a node changed, and nobody told");
        Cow::Borrowed(counts)
    }
}

/// How many devices of the node fit the demand.
pub(super) fn count_fitting(node: &NodeView, demand: &Demand) -> u32 {
    node.roomy_devices(demand).unwrap_or(0)
}
