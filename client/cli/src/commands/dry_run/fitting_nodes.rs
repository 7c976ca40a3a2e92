//! Nodes that could run a job, or a part of it, if they were empty.

use cohabit_client::types::{
    Bytes, Demand, Device, DeviceRecord, DeviceSharing, EnforcementRequirement, NodeRecord, NodeState, Share,
    Spread,
};

/// The names of the nodes. Whether they suffice is for the head to decide.
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

/// The number of devices of this node that could hold a rank.
fn large_devices(demand: &Demand, node: &NodeRecord) -> usize {
    let holds = |record: &&DeviceRecord| could_hold(demand, &record.device, node.sharing.reserve);
    node.devices.iter().filter(holds).count()
}

/// Whether an empty device could hold a rank. A rank that shares the device leaves the reserve free.
fn could_hold(demand: &Demand, device: &Device, reserve: Bytes) -> bool {
    let (shares, enforces) = match device.condition.sharing {
        DeviceSharing::Enforced | DeviceSharing::OneUser(_) => {
            (demand.share_of(device.memory) < Share::WHOLE, true)
        }
        DeviceSharing::Unenforced(_) => (demand.share_of(device.memory) < Share::WHOLE, false),
        DeviceSharing::Alone(_) => (false, false),
    };
    let needed = demand.gpu_memory.map(|needed| if shares { needed + reserve } else { needed });
    let is_large = device.memory.zip(needed).is_none_or(|(there, needed)| there >= needed);
    is_large && (enforces || !shares || demand.limits == EnforcementRequirement::BestEffort)
}
