//! The tightest fit: among all nodes that fit, those with the least left, so that large gaps stay large.
//!
//! For jobs whose speed does not depend on their placement, and for jobs that need the same on each of
//! several nodes. Between equal nodes the one that joined first wins.

use cohabit_types::{Demand, DeviceId, GpuRequest, Placement, RankPlacement};

use crate::mapping::{Server, Slot};
use crate::{FreeNodes, NodeView};

/// One device on each of the demanded nodes: the fullest device that the share fits; only room on the node
/// for a demand without devices.
pub(super) fn on_fullest(demand: &Demand, free: &FreeNodes<'_>) -> Option<Placement> {
    let device = |(position, node)| {
        let (left, devices) = tightest_device(demand, node)?;
        Some((left, position, node.part(demand, devices)))
    };
    let mut devices: Vec<_> = free.nodes().enumerate().filter_map(device).collect();
    devices.sort_by_key(|(left, position, _)| (*left, *position));
    devices.truncate(demand.nodes as usize);
    let parts: Vec<RankPlacement> = devices.into_iter().map(|(_, _, part)| part).collect();
    (parts.len() == demand.nodes as usize).then_some(Placement { parts })
}

/// The fullest device of a node that the demand fits, and the share that is free on it.
fn tightest_device(demand: &Demand, node: &NodeView) -> Option<(u64, Vec<DeviceId>)> {
    if !node.has_host_room(demand) {
        return None;
    }
    match demand.gpus {
        GpuRequest::Whole(0) => Some((u64::from(node.cpus_free), Vec::new())),
        GpuRequest::Whole(_) | GpuRequest::Part(_) => {
            let device = node.roomy(demand).min_by_key(|device| (device.free, device.memory_free))?;
            Some((u64::from(device.free.0), vec![device.id.clone()]))
        }
    }
}

/// The demanded number of devices on each of the demanded number of servers.
pub(super) fn equal_slots(servers: &[Server], demand: &Demand) -> Option<Vec<Slot>> {
    let count = demand.devices();
    let has_room = |(_, server): &(usize, &Server)| server.free >= count;
    let mut roomy: Vec<(usize, &Server)> = servers.iter().enumerate().filter(has_room).collect();
    roomy.sort_by_key(|(position, server)| (server.free, *position));
    roomy.truncate(demand.nodes as usize);
    let slots: Vec<Slot> = roomy.into_iter().map(|(server, _)| Slot { server, count }).collect();
    (slots.len() == demand.nodes as usize).then_some(slots)
}
