//! Amounts of GPUs, cores and host memory: what a node has, what is free there, and what a job holds.
//!
//! For policies that weigh several resources against each other. Whether a demand fits is not decided here.

use cohabit_types::{Bytes, Demand, HostShare, Placement, Share};

use crate::{DeviceAvailability, NodeView};

/// Amounts of the three resources.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResourceAmounts {
    /// In thousandths of a device.
    pub(crate) gpus: u64,
    /// Cores.
    pub(crate) cpus: u64,
    /// Host memory.
    pub(crate) memory: Bytes,
}

impl ResourceAmounts {
    const fn new(gpus: u64, host: HostShare) -> ResourceAmounts {
        ResourceAmounts { gpus, cpus: host.cpus as u64, memory: host.memory }
    }

    /// What a demand asks for on all its nodes together; of a range, the least.
    pub(crate) fn of_demand(demand: &Demand) -> ResourceAmounts {
        let one_node = ResourceAmounts::new(0, demand.least_host());
        let nodes = u64::from(demand.nodes);
        ResourceAmounts {
            gpus: demand.total_milli(),
            cpus: one_node.cpus.saturating_mul(nodes),
            memory: Bytes(one_node.memory.0.saturating_mul(nodes)),
        }
    }

    /// What a job holds with this placement; of a range, what it was given.
    pub(crate) fn of_placement(demand: &Demand, placement: &Placement) -> ResourceAmounts {
        let parts = placement.parts.iter().map(|part| {
            let gpus = part.devices.len() as u64 * u64::from(part.share.0);
            ResourceAmounts::new(gpus, part.host_share(demand))
        });
        parts.fold(ResourceAmounts::default(), ResourceAmounts::plus)
    }

    /// What a demand would hold on this node, with its devices there; `None` where it does not fit.
    pub(crate) fn on_node(demand: &Demand, node: &NodeView) -> Option<ResourceAmounts> {
        if !node.has_host_room(demand) {
            return None;
        }
        let (devices, mut roomy) = (demand.devices(), node.roomy(demand));
        let first = roomy.next();
        if u32::from(first.is_some()) + (roomy.count() as u32) < devices {
            return None;
        }
        let share = first.filter(|_| devices > 0).map_or(Share(0), |device| device.share_for(demand));
        let gpus = u64::from(devices) * u64::from(share.0);
        Some(ResourceAmounts::new(gpus, node.starting_share(demand, devices)))
    }

    /// All that a node has in service.
    pub(crate) fn of_node(node: &NodeView) -> ResourceAmounts {
        let devices = node.devices.iter().filter(|device| device.is_in_service()).count();
        ResourceAmounts::new(devices as u64 * u64::from(Share::WHOLE.0), node.host())
    }

    /// What jobs could take of a node now.
    pub(crate) fn free_on(node: &NodeView) -> ResourceAmounts {
        let open = node.devices.iter().filter(|it| it.availability == DeviceAvailability::Open);
        ResourceAmounts::new(open.map(|device| u64::from(device.free.0)).sum(), node.host_free())
    }

    /// All that these nodes have in service.
    pub(crate) fn of_nodes(nodes: &[NodeView]) -> ResourceAmounts {
        nodes.iter().map(ResourceAmounts::of_node).fold(ResourceAmounts::default(), ResourceAmounts::plus)
    }

    /// Both amounts together.
    pub(crate) fn plus(self, other: ResourceAmounts) -> ResourceAmounts {
        ResourceAmounts {
            gpus: self.gpus.saturating_add(other.gpus),
            cpus: self.cpus.saturating_add(other.cpus),
            memory: self.memory + other.memory,
        }
    }

    /// What is left without `other`.
    pub(crate) const fn minus(self, other: ResourceAmounts) -> ResourceAmounts {
        ResourceAmounts {
            gpus: self.gpus.saturating_sub(other.gpus),
            cpus: self.cpus.saturating_sub(other.cpus),
            memory: self.memory.saturating_sub(other.memory),
        }
    }

    /// Each amount as a fraction of that in `whole`: GPUs, cores, memory. Of a resource of which there is
    /// nothing, it is 0: nobody can be given any.
    pub(crate) fn fractions_of(self, whole: ResourceAmounts) -> [f64; 3] {
        let fraction = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        [
            fraction(self.gpus, whole.gpus),
            fraction(self.cpus, whole.cpus),
            fraction(self.memory.0, whole.memory.0),
        ]
    }
}
