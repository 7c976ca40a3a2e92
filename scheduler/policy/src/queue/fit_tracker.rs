//! Nodes that fill and empty, and whether a given demand fits them at each moment.
//!
//! After a change only the changed node is looked at, so releases can be tried one by one. Where the demand
//! would go is not decided here.

use cohabit_types::{Demand, Placement, Spread};

use crate::{FreeNodes, NodeView};

/// Nodes, watched for one demand.
#[derive(Debug, Clone)]
pub(crate) struct FitTracker<'v> {
    free: FreeNodes<'v>,
    demand: Demand,
    /// What each node could contribute: its devices where they may be on any nodes, else 1 or 0.
    contributions: Vec<u32>,
    total: u64,
}

impl<'v> FitTracker<'v> {
    pub(crate) fn new(free: FreeNodes<'v>, demand: Demand) -> FitTracker<'v> {
        let contributions: Vec<u32> = free.nodes().map(|node| contribution(&demand, node)).collect();
        let total = contributions.iter().map(|it| u64::from(*it)).sum();
        FitTracker { free, demand, contributions, total }
    }

    /// Whether the demand fits now.
    pub(crate) const fn fits(&self) -> bool {
        self.total >= wanted(&self.demand)
    }

    pub(crate) fn take(&mut self, demand: &Demand, placement: &Placement) {
        self.free.take(demand, placement);
        self.count(placement);
    }

    pub(crate) fn give_back(&mut self, demand: &Demand, placement: &Placement) {
        self.free.give_back(demand, placement);
        self.count(placement);
    }

    pub(crate) fn into_free(self) -> FreeNodes<'v> {
        self.free
    }

    fn count(&mut self, placement: &Placement) {
        for part in &placement.parts {
            if let Some(position) = self.free.position(part.node) {
                let now = contribution(&self.demand, self.free.node(position));
                let before = std::mem::replace(&mut self.contributions[position], now);
                self.total = self.total - u64::from(before) + u64::from(now);
            }
        }
    }
}

/// Whether a demand fits these nodes.
pub(crate) fn fits(demand: &Demand, free: &FreeNodes<'_>) -> bool {
    let mut total = 0;
    free.nodes().any(|node| {
        total += u64::from(contribution(demand, node));
        total >= wanted(demand)
    })
}

fn contribution(demand: &Demand, node: &NodeView) -> u32 {
    let roomy = node.roomy_devices(demand);
    match demand.spread {
        Spread::Free => roomy.unwrap_or(0),
        Spread::Even => u32::from(roomy.is_some_and(|devices| devices >= demand.devices())),
    }
}

const fn wanted(demand: &Demand) -> u64 {
    match demand.spread {
        Spread::Free => demand.devices() as u64,
        Spread::Even => demand.nodes as u64,
    }
}
