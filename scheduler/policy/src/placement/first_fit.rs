//! The simplest placer: the first nodes, and on them the first devices, that are free. It looks at nothing
//! else.
//!
//! [`find_shortage`], which every placer uses, says why a demand does not fit.

use cohabit_types::{Demand, Placement, RankPlacement, Spread};

use crate::{FreeNodes, NodeView, PendingJob, Placer, Profile, Proposal, Shortage};

/// Takes nodes in the order in which they joined and devices in the order in which their worker lists them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FirstFit;

impl Placer for FirstFit {
    fn place(&mut self, job: &PendingJob, _: &Profile, free: &FreeNodes) -> Result<Proposal, Shortage> {
        let placement = match job.demand.spread {
            Spread::Even => on_equal_nodes(&job.demand, free.nodes()),
            Spread::Free => on_any_nodes(&job.demand, free.nodes()),
        };
        placement.map(Proposal::new).ok_or_else(|| find_shortage(&job.demand, free.nodes()))
    }
}

/// The same number of devices on each of the first nodes that have them.
fn on_equal_nodes<'n>(demand: &Demand, nodes: impl Iterator<Item = &'n NodeView>) -> Option<Placement> {
    let roomy = nodes.filter(|node| node.shortage(demand).is_none()).take(demand.nodes as usize);
    let parts: Vec<RankPlacement> = roomy.map(|node| place_on_node(demand, node, demand.devices())).collect();
    (parts.len() == demand.nodes as usize).then_some(Placement { parts })
}

/// Whatever the first nodes have.
fn on_any_nodes<'n>(demand: &Demand, nodes: impl Iterator<Item = &'n NodeView>) -> Option<Placement> {
    let mut parts = Vec::new();
    let mut needed = demand.devices();
    for node in nodes {
        let count = node.roomy_devices(demand).unwrap_or(0).min(needed);
        if count > 0 {
            parts.push(place_on_node(demand, node, count));
            needed -= count;
        }
        if needed == 0 {
            return Some(Placement { parts });
        }
    }
    None
}

/// The first devices of a node, with ranks numbered in order.
pub(crate) fn place_on_node(demand: &Demand, node: &NodeView, devices: u32) -> RankPlacement {
    node.part(demand, node.first_devices(demand, devices))
}

/// Why a demand does not fit these nodes: the shortage of the node that came nearest, or of all nodes
/// together.
pub(crate) fn find_shortage<'n>(demand: &Demand, nodes: impl Iterator<Item = &'n NodeView>) -> Shortage {
    if demand.spread == Spread::Free {
        let found = nodes.filter_map(|node| node.roomy_devices(demand)).sum();
        return Shortage::DevicesInAll { needed: demand.devices(), found };
    }
    let (mut found, mut lacking) = (0, 0);
    let (mut nearest, mut reserved): (Option<Shortage>, Option<Shortage>) = (None, None);
    let mut none = Shortage::Nodes;
    for node in nodes {
        match node.shortage(demand) {
            None => found += 1,
            Some(shortage @ (Shortage::Account | Shortage::CodeSnapshots | Shortage::Application)) => {
                none = shortage;
            }
            Some(shortage @ Shortage::Reserved { .. }) => reserved = Some(nearer(reserved, shortage)),
            Some(shortage) => {
                lacking += 1;
                nearest = Some(nearer(nearest, shortage));
            }
        }
    }
    match nearest {
        Some(shortage) if found == 0 && demand.nodes <= lacking => shortage,
        None if found == 0 => reserved.unwrap_or(none),
        Some(_) | None => Shortage::NodesAtOnce { needed: demand.nodes, found },
    }
}

/// The shortage of the node that came nearer; between equal ones, of the later node.
fn nearer(known: Option<Shortage>, other: Shortage) -> Shortage {
    match known {
        Some(known) if rank_shortage(&known) > rank_shortage(&other) => known,
        Some(_) | None => other,
    }
}

/// How near a node came: devices, then rank slots, then memory, then the host; among equals, by how much is
/// left.
fn rank_shortage(shortage: &Shortage) -> (u8, u64) {
    match shortage {
        Shortage::Nodes
        | Shortage::Account
        | Shortage::KeptForOthers
        | Shortage::CodeSnapshots
        | Shortage::Application
        | Shortage::NodesAtOnce { .. }
        | Shortage::DevicesInAll { .. }
        | Shortage::Busy { .. }
        | Shortage::Slowdown { .. } => (0, 0),
        Shortage::Reserved { starts_in, .. } => (0, starts_in.as_micros()),
        Shortage::Enforcement => (1, 0),
        Shortage::Devices { whole, share, .. } => (2, u64::from(*whole) * 1_000 + u64::from(share.0)),
        Shortage::RankSlots { .. } | Shortage::OtherUser => (3, 0),
        Shortage::ForeignMemory { hold } => (4, u64::MAX - hold.0),
        Shortage::Memory { free, .. } => (4, free.0),
        Shortage::Cpus { free, .. } => (5, u64::from(*free)),
        Shortage::HostMemory { free, .. } => (6, free.0),
        Shortage::Jobs { .. } => (7, 0),
    }
}
