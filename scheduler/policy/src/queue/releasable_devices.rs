//! What stopping running jobs could free at most, node by node, so that jobs whose end cannot help are not
//! considered.
//!
//! Only devices are counted: the answer may promise too much, never too little.

use cohabit_types::{Demand, Placement, Spread};

use crate::FreeNodes;

/// An upper bound on the devices that fit a demand once the counted jobs have stopped.
#[derive(Debug, Clone)]
pub(super) struct ReleasableDevices {
    demand: Demand,
    /// By the position of the node.
    devices: Vec<u32>,
    total: u32,
}

impl ReleasableDevices {
    /// Before any job has stopped.
    pub(super) fn new(demand: &Demand, free: &FreeNodes<'_>) -> ReleasableDevices {
        let devices: Vec<u32> = free.nodes().map(|node| node.roomy(demand).count() as u32).collect();
        ReleasableDevices { demand: *demand, total: devices.iter().sum(), devices }
    }

    /// A job with this placement stops too.
    pub(super) fn count(&mut self, placement: &Placement, free: &FreeNodes<'_>) {
        for part in &placement.parts {
            if let Some(position) = free.position(part.node) {
                self.devices[position] += part.devices.len() as u32;
                self.total += part.devices.len() as u32;
            }
        }
    }

    /// Whether the end of a job with this placement may help, together with the counted jobs.
    pub(super) fn helps(&self, placement: &Placement, free: &FreeNodes<'_>) -> bool {
        let wanted = self.demand.devices();
        let node_suffices = |position| match self.demand.spread {
            Spread::Even => self.devices[position] >= wanted,
            Spread::Free => self.total >= wanted,
        };
        placement.parts.iter().filter_map(|part| free.position(part.node)).any(node_suffices)
    }
}
