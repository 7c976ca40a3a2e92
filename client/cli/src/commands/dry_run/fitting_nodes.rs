//! Nodes that could run a job, or a part of it, when they are empty.

use cohabit_client::proto::{
    Bytes, Demand, Device, DeviceRecord, DeviceSharing, EnforcementRequirement, NodeRecord, NodeState, Share,
    Spread,
};

/// Their names. Whether they are enough, the head knows.
pub(super) fn fitting_nodes(demand: &Demand, nodes: &[NodeRecord]) -> Vec<String> {
    nodes.iter().filter(|node| fits(demand, node)).map(|node| node.name.clone()).collect()
}

fn is_there(node: &NodeRecord) -> bool {
    match node.state {
        NodeState::Up
        | NodeState::Paused
        | NodeState::Draining
        | NodeState::Drained
        | NodeState::Unreachable => true,
        NodeState::Lost => false,
    }
}

fn fits(demand: &Demand, node: &NodeRecord) -> bool {
    let least = match demand.spread {
        Spread::Even => demand.devices() as usize,
        Spread::Free => 1,
    };
    let is_roomy = node.cpus >= demand.cpus && node.memory >= demand.memory;
    is_there(node) && is_roomy && large_devices(demand, node) >= least
}

/// Devices of this node that could hold a rank.
fn large_devices(demand: &Demand, node: &NodeRecord) -> usize {
    let holds = |record: &&DeviceRecord| could_hold(demand, &record.device, node.sharing.reserve);
    node.devices.iter().filter(holds).count()
}

/// Whether a device without anything on it could hold a rank. Who shares leaves the reserve.
fn could_hold(demand: &Demand, device: &Device, reserve: Bytes) -> bool {
    let (shares, enforces) = match device.condition.sharing {
        DeviceSharing::Enforced => (demand.share_of(device.memory) < Share::WHOLE, true),
        DeviceSharing::Unenforced(_) => (demand.share_of(device.memory) < Share::WHOLE, false),
        DeviceSharing::Alone(_) => (false, false),
    };
    let needed = demand.gpu_memory.map(|needed| if shares { needed + reserve } else { needed });
    let is_large = device.memory.zip(needed).is_none_or(|(there, needed)| there >= needed);
    is_large && (enforces || !shares || demand.limits == EnforcementRequirement::BestEffort)
}
