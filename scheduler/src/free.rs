//! What is free while a plan is being made: a copy of the view's nodes from which placed jobs are taken.
//!
//! This is the one place that knows whether a demand fits a node; the head uses it to check plans and to
//! refuse, at submission, what no node can ever hold.

use cohabit_proto::{Bytes, Demand, DeviceId, Gpus, NodeId, Placement, RankPlacement, Share};

use crate::{DeviceView, NodeView, Shortage};

/// All nodes, with what is left of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeNodes {
    nodes: Vec<NodeView>,
}

impl FreeNodes {
    /// What the view says is free.
    #[must_use]
    pub fn new(nodes: &[NodeView]) -> FreeNodes {
        FreeNodes { nodes: nodes.to_vec() }
    }

    /// All nodes.
    #[must_use]
    pub fn nodes(&self) -> &[NodeView] {
        &self.nodes
    }

    /// Whether the nodes could hold the demand if nothing ran on them.
    #[must_use]
    pub fn could_ever_hold(&self, demand: &Demand) -> bool {
        let holding = self.nodes.iter().filter(|node| node.emptied().devices_for(demand).is_ok()).count();
        holding >= demand.nodes as usize
    }

    /// Whether each part of the placement fits what is left of its node.
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn fits(&self, demand: &Demand, placement: &Placement) -> Result<(), String> {
        if placement.parts.len() != demand.nodes as usize {
            return Err(format!("it needs {} nodes, the plan gives {}", demand.nodes, placement.parts.len()));
        }
        let mut seen: Vec<NodeId> = Vec::new();
        for part in &placement.parts {
            if seen.contains(&part.node) {
                return Err("the plan names a node twice".into());
            }
            seen.push(part.node);
            let node = self.nodes.iter().find(|node| node.id == part.node);
            node.ok_or("the plan names a node that takes no jobs")?.fits(demand, part)?;
        }
        Ok(())
    }

    /// Takes what a placed job uses.
    pub fn take(&mut self, demand: &Demand, placement: &Placement) {
        for part in &placement.parts {
            if let Some(node) = self.nodes.iter_mut().find(|node| node.id == part.node) {
                node.take(demand, part);
            }
        }
    }
}

impl NodeView {
    /// The same node with nothing on it.
    fn emptied(&self) -> NodeView {
        let whole = |device: &DeviceView| DeviceView {
            free: Share::WHOLE,
            memory_free: device.memory,
            residents: Vec::new(),
            ..device.clone()
        };
        NodeView {
            cpus_free: self.cpus,
            memory_free: self.memory,
            devices: self.devices.iter().map(whole).collect(),
            ..self.clone()
        }
    }

    /// The first devices that meet the demand on this node.
    ///
    /// # Errors
    /// What there is too little of.
    pub fn devices_for(&self, demand: &Demand) -> Result<Vec<DeviceId>, Shortage> {
        let wanted = demand.devices() as usize;
        let roomy = || self.devices.iter().filter(|device| device.free >= demand.share());
        if roomy().count() < wanted {
            return Err(self.too_few_devices(demand.gpus));
        }
        let fitting: Vec<&DeviceView> =
            roomy().filter(|device| device.has_memory(demand.gpu_memory)).collect();
        if fitting.len() < wanted {
            let free = roomy().filter_map(|device| device.memory_free).max().unwrap_or_default();
            return Err(Shortage::Memory { needed: demand.gpu_memory.unwrap_or_default(), free });
        }
        if self.cpus_free < demand.cpus {
            return Err(Shortage::Cpus { needed: demand.cpus, free: self.cpus_free });
        }
        if self.memory_free < demand.memory {
            return Err(Shortage::HostMemory { needed: demand.memory, free: self.memory_free });
        }
        Ok(fitting[..wanted].iter().map(|device| device.id.clone()).collect())
    }

    fn too_few_devices(&self, needed: Gpus) -> Shortage {
        Shortage::Devices {
            needed,
            whole: self.devices.iter().filter(|device| device.free == Share::WHOLE).count() as u32,
            share: self.devices.iter().map(|device| device.free).max().unwrap_or_default(),
        }
    }

    fn fits(&self, demand: &Demand, part: &RankPlacement) -> Result<(), String> {
        let name = &self.name;
        if part.devices.len() != demand.devices() as usize || part.share != demand.share() {
            return Err(format!("the plan gives other devices on {name} than the job asks for"));
        }
        for (position, id) in part.devices.iter().enumerate() {
            let device = self.devices.iter().find(|device| device.id == *id);
            let device = device.ok_or_else(|| format!("{name} has no device {id}"))?;
            if part.devices[..position].contains(id) {
                return Err(format!("the plan names device {id} of {name} twice"));
            }
            if device.free < part.share || !device.has_memory(demand.gpu_memory) {
                return Err(format!("device {id} of {name} has no room any more"));
            }
        }
        if self.cpus_free < demand.cpus || self.memory_free < demand.memory {
            return Err(format!("{name} has too few cores or too little memory left"));
        }
        Ok(())
    }

    fn take(&mut self, demand: &Demand, part: &RankPlacement) {
        self.cpus_free = self.cpus_free.saturating_sub(demand.cpus);
        self.memory_free = self.memory_free.minus(demand.memory);
        for device in self.devices.iter_mut().filter(|device| part.devices.contains(&device.id)) {
            device.free = device.free.minus(part.share);
            let claimed = demand.gpu_memory.unwrap_or_default();
            device.memory_free = device.memory_free.map(|free| free.minus(claimed));
        }
    }
}

impl DeviceView {
    fn has_memory(&self, needed: Option<Bytes>) -> bool {
        match (needed, self.memory_free) {
            (Some(needed), Some(free)) => free >= needed,
            (None, _) | (Some(_), None) => true,
        }
    }
}
