//! The devices that one job fits.

use cohabit_types::{Demand, Placement};

use crate::{DeviceView, FreeNodes, NodeView};

/// A device that the job fits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FreeDevice<'f> {
    pub(crate) node: &'f NodeView,
    pub(crate) view: &'f DeviceView,
}

impl<'f> FreeDevice<'f> {
    /// All of them, in the order of nodes and of their devices.
    pub(crate) fn all(demand: &Demand, free: &'f FreeNodes<'_>) -> Vec<FreeDevice<'f>> {
        let roomy = free.nodes().filter(|node| node.has_host_room(demand));
        roomy
            .flat_map(|node| node.roomy(demand).map(move |device| FreeDevice { node, view: device }))
            .collect()
    }

    pub(crate) fn placement(&self, demand: &Demand) -> Placement {
        Placement { parts: vec![self.node.part(demand, vec![self.view.id.clone()])] }
    }
}

/// The index of the device with the least load; among equals, the one with more free memory, then the first.
///
/// # Panics
/// If the list is empty.
pub(crate) fn least_loaded(devices: &[FreeDevice<'_>], load: impl FnMut(&FreeDevice<'_>) -> f64) -> usize {
    let loads: Vec<f64> = devices.iter().map(load).collect();
    let before = |one: &usize, other: &usize| {
        let more_memory = devices[*other].view.memory_free.cmp(&devices[*one].view.memory_free);
        loads[*one].total_cmp(&loads[*other]).then(more_memory)
    };
    (0..devices.len()).min_by(before).expect("there is at least one device")
}
