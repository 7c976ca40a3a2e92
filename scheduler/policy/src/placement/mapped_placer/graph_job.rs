//! From a mapping to a placement: which node gets which ranks, how slow that is, and how to say it.
//!
//! The node with rank 0 comes first, because all ranks meet there. A command that launches its own ranks
//! numbers them in the order of nodes and devices whatever the mapping says, so its placement is judged by
//! that order.

use std::sync::Arc;

use cohabit_types::{Demand, LaunchMode, Placement, RankPlacement};

use crate::mapping::{JobGraph, Mapper, Mapping, Server, Slot};
use crate::placement::first_fit::place_on_node;
use crate::{FreeNodes, Profile, Proposal};

/// A smaller slowdown is not mentioned.
const NOTABLE: f64 = 1.001;

/// A job with a graph.
#[derive(Debug, Clone, Copy)]
pub(super) struct GraphJob<'p> {
    pub(super) graph: &'p Arc<JobGraph>,
    /// The iteration time at the best placement, in seconds.
    fastest: f64,
    launch: LaunchMode,
}

impl<'p> GraphJob<'p> {
    pub(super) fn of(profile: &'p Profile) -> Option<GraphJob<'p>> {
        let (graph, bounds) = profile.graph.as_ref().zip(profile.bounds)?;
        Some(GraphJob { graph, fastest: bounds.fastest, launch: profile.launch })
    }

    /// The placement that a mapping stands for.
    pub(super) fn proposal(
        &self,
        mapper: &mut Mapper,
        servers: &[Server],
        mapping: Mapping,
        demand: &Demand,
        free: &FreeNodes<'_>,
    ) -> Proposal {
        let mut placed: Vec<(Vec<u32>, Slot)> = mapping.ranks.into_iter().zip(mapping.slots).collect();
        placed.sort_by(|(ranks, _), (others, _)| ranks.cmp(others));
        let slots: Vec<Slot> = placed.iter().map(|(_, slot)| *slot).collect();
        let alpha = match self.launch {
            LaunchMode::PerGpu => mapping.alpha,
            LaunchMode::PerNode => mapper.consecutive(self.graph, servers, &slots),
        };
        let parts = placed.into_iter().map(|(ranks, slot)| self.part(demand, ranks, slot, free)).collect();
        let slowdown = self.relative(alpha);
        let why = self.explain(alpha, slowdown, &slots, demand);
        Proposal { slowdown, why, ..Proposal::new(Placement { parts }) }
    }

    fn part(&self, demand: &Demand, ranks: Vec<u32>, slot: Slot, free: &FreeNodes<'_>) -> RankPlacement {
        let part = place_on_node(demand, free.node(slot.server), slot.count);
        match self.launch {
            LaunchMode::PerGpu => RankPlacement { ranks, ..part },
            LaunchMode::PerNode => part,
        }
    }

    /// The slowdown of a job that runs on these slots, in this order.
    pub(super) fn slowdown(&self, mapper: &mut Mapper, servers: &[Server], slots: Vec<Slot>) -> f64 {
        let devices: u32 = slots.iter().map(|slot| slot.count).sum();
        if devices != self.graph.devices() {
            return 1.0;
        }
        self.relative(match self.launch {
            LaunchMode::PerGpu => mapper.map(self.graph, servers, slots).alpha,
            LaunchMode::PerNode => mapper.consecutive(self.graph, servers, &slots),
        })
    }

    /// At least 1, also where an iteration takes no time at all.
    fn relative(&self, alpha: f64) -> f64 {
        let slowdown = alpha / self.fastest;
        if slowdown.is_finite() { slowdown.max(1.0) } else { 1.0 }
    }

    fn explain(&self, alpha: f64, slowdown: f64, slots: &[Slot], demand: &Demand) -> String {
        let devices = demand.total_devices();
        let speed = match slowdown < NOTABLE {
            true => "as fast as the best placement".to_owned(),
            false => format!("an iteration takes {alpha:.3} s, {:.3} s at best", self.fastest),
        };
        match slots.len() {
            1 if slowdown < NOTABLE => String::new(),
            1 => format!("{devices} GPUs on 1 node, {speed}"),
            nodes => format!("{devices} GPUs on {nodes} nodes, {speed}"),
        }
    }
}
