//! The tightest fit: of all that have room, those that have the least of it, so that large rooms stay large.
//!
//! For jobs whose place does not matter to their speed, and for those that want as much on each of several
//! nodes. Ties go to the node that joined first.

use cohabit_types::{Demand, DeviceId, GpuRequest, Placement, RankPlacement};

use crate::mapping::{Server, Slot};
use crate::{FreeNodes, NodeView};

/// On as many nodes as are demanded: the fullest device of each with room for a part of one, or nothing but
/// room on the node.
pub(super) fn on_fullest(demand: &Demand, free: &FreeNodes<'_>) -> Option<Placement> {
    let seat = |(position, node)| {
        let (left, devices) = tightest_seat(demand, node)?;
        Some((left, position, node.part(demand, devices)))
    };
    let mut seats: Vec<_> = free.nodes().enumerate().filter_map(seat).collect();
    seats.sort_by_key(|(left, position, _)| (*left, *position));
    seats.truncate(demand.nodes as usize);
    let parts: Vec<RankPlacement> = seats.into_iter().map(|(_, _, part)| part).collect();
    (parts.len() == demand.nodes as usize).then_some(Placement { parts })
}

/// What is free on the fullest part of a node that has room, and which device that is.
fn tightest_seat(demand: &Demand, node: &NodeView) -> Option<(u64, Vec<DeviceId>)> {
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
