//! What is free while a plan is being made: a copy of the view's nodes from which placed jobs are taken.
//!
//! This is the one place that knows whether a demand fits a node; the head uses it to check plans and to
//! refuse, at submission, what no node can ever hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_proto::{Demand, DeviceId, Gpus, Limits, NodeId, Placement, RankPlacement, Share, Spread};

use crate::{DeviceView, Intake, NodeView, SharingMode, Shortage};

/// All nodes, with what is left of them. Costs only what is taken.
#[derive(Debug, Clone)]
pub struct FreeNodes<'v> {
    view: &'v [NodeView],
    /// Nodes of which something was taken, or to which something was given back, by position.
    touched: BTreeMap<usize, Arc<NodeView>>,
}

impl<'v> FreeNodes<'v> {
    /// What the view says is free.
    #[must_use]
    pub const fn new(nodes: &'v [NodeView]) -> FreeNodes<'v> {
        FreeNodes { view: nodes, touched: BTreeMap::new() }
    }

    /// All nodes, in the order in which they joined.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeView> {
        let mut touched = self.touched.iter().peekable();
        self.view.iter().enumerate().map(move |(position, node)| {
            touched.next_if(|(at, _)| **at == position).map_or(node, |(_, node)| &**node)
        })
    }

    /// The node at a position of [`FreeNodes::nodes`].
    ///
    /// # Panics
    /// If there are not so many nodes.
    #[must_use]
    pub fn node(&self, position: usize) -> &NodeView {
        self.touched.get(&position).map_or(&self.view[position], |node| &**node)
    }

    /// Where in [`FreeNodes::nodes`] a node is, if it takes jobs.
    #[must_use]
    pub fn position(&self, node: NodeId) -> Option<usize> {
        self.view.iter().position(|it| it.id == node)
    }

    /// Whether the nodes could hold the demand if nothing ran on them.
    #[must_use]
    pub fn could_ever_hold(&self, demand: &Demand) -> bool {
        could_ever_hold(self.view, demand)
    }

    /// Takes what a placed job uses.
    pub fn take(&mut self, demand: &Demand, placement: &Placement) {
        self.for_each_part(placement, |node, part| node.take(demand, part));
    }

    /// Gives back what a placed job used.
    pub fn give_back(&mut self, demand: &Demand, placement: &Placement) {
        self.for_each_part(placement, |node, part| node.give_back(demand, part));
    }

    fn for_each_part(
        &mut self,
        placement: &Placement,
        mut change: impl FnMut(&mut NodeView, &RankPlacement),
    ) {
        for part in &placement.parts {
            if let Some(position) = self.position(part.node) {
                let node =
                    self.touched.entry(position).or_insert_with(|| Arc::new(self.view[position].clone()));
                change(Arc::make_mut(node), part);
            }
        }
    }
}

/// Whether these nodes could hold the demand if nothing ran on them.
#[must_use]
pub fn could_ever_hold(nodes: &[NodeView], demand: &Demand) -> bool {
    match demand.spread {
        Spread::Even => {
            let holds = |node: &&NodeView| node.devices_ever(demand).is_some_and(|it| it >= demand.devices());
            nodes.iter().filter(holds).count() >= demand.nodes as usize
        }
        Spread::Free => {
            let devices: u32 = nodes.iter().filter_map(|node| node.devices_ever(demand)).sum();
            devices >= demand.devices()
        }
    }
}

/// Whether the parts of a placement are such as the demand asks for, whatever is free.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn check_shape(demand: &Demand, placement: &Placement) -> Result<(), String> {
    let devices = |part: &RankPlacement| part.devices.len();
    match demand.spread {
        Spread::Even if placement.parts.len() != demand.nodes as usize => {
            return Err(format!("it needs {} nodes, the plan gives {}", demand.nodes, placement.parts.len()));
        }
        Spread::Even if placement.parts.iter().any(|part| devices(part) != demand.devices() as usize) => {
            return Err("the plan gives another number of devices on a node than the job asks for".into());
        }
        Spread::Free if placement.parts.iter().map(devices).sum::<usize>() != demand.devices() as usize => {
            return Err("the plan gives another number of devices than the job asks for".into());
        }
        Spread::Free if placement.parts.iter().any(|part| part.devices.is_empty()) => {
            return Err("the plan names a node and no device on it".into());
        }
        Spread::Even | Spread::Free => {}
    }
    for (position, part) in placement.parts.iter().enumerate() {
        if placement.parts[..position].iter().any(|earlier| earlier.node == part.node) {
            return Err("the plan names a node twice".into());
        }
    }
    check_ranks(placement)
}

/// Where a placement numbers its ranks, each number of 0.. occurs once.
fn check_ranks(placement: &Placement) -> Result<(), String> {
    let mut ranks: Vec<u32> = placement.parts.iter().flat_map(|part| part.ranks.iter().copied()).collect();
    if ranks.is_empty() {
        return Ok(());
    }
    ranks.sort_unstable();
    let complete = placement.parts.iter().all(|part| part.ranks.len() == part.devices.len());
    match complete && ranks.iter().zip(0..).all(|(rank, number)| *rank == number) {
        true => Ok(()),
        false => Err("the plan does not number each rank once".into()),
    }
}

impl NodeView {
    /// How many devices are large enough for the demand; nothing where the node itself is too small.
    fn devices_ever(&self, demand: &Demand) -> Option<u32> {
        let node_is = self.cpus >= demand.cpus && self.memory >= demand.memory;
        node_is.then(|| self.devices.iter().filter(|device| device.could_ever_hold(demand)).count() as u32)
    }

    /// How many devices have room for the demand; nothing where too few cores or too little memory is left.
    #[must_use]
    pub fn roomy_devices(&self, demand: &Demand) -> Option<u32> {
        self.has_host_room(demand).then(|| self.roomy(demand).count() as u32)
    }

    /// The first devices with room for the demand, at most so many.
    #[must_use]
    pub fn first_devices(&self, demand: &Demand, count: u32) -> Vec<DeviceId> {
        self.roomy(demand).take(count as usize).map(|device| device.id.clone()).collect()
    }

    /// The devices with room for the demand, in the order in which they are filled.
    pub(crate) fn roomy(&self, demand: &Demand) -> impl Iterator<Item = &DeviceView> {
        self.devices.iter().filter(|device| device.has_place(demand) && device.has_memory(demand))
    }

    /// These devices for the demand; it gets as much of each as it has to.
    ///
    /// What a demand takes of a device depends on whether the device has memory of its own, and a node's
    /// devices are alike in that.
    #[must_use]
    pub fn part(&self, demand: &Demand, devices: Vec<DeviceId>) -> RankPlacement {
        let taken = devices.first().and_then(|id| self.devices.iter().find(|device| device.id == *id));
        let share = taken.map_or(demand.share(), |device| demand.share_of(device.memory));
        RankPlacement { node: self.id, devices, share, ranks: Vec::new() }
    }

    /// Whether enough cores and memory are left.
    pub(crate) fn has_host_room(&self, demand: &Demand) -> bool {
        self.cpus_free >= demand.cpus && self.memory_free >= demand.memory
    }

    /// What this node has too little of for the demand; nothing where it has room.
    #[must_use]
    pub fn shortage(&self, demand: &Demand) -> Option<Shortage> {
        let wanted = demand.devices() as usize;
        let free_enough = || self.devices.iter().filter(|device| device.has_place(demand));
        if free_enough().count() < wanted {
            return Some(self.too_few_devices(demand.gpus));
        }
        if self.roomy(demand).count() < wanted {
            let free = free_enough().filter_map(|device| device.memory_free).max().unwrap_or_default();
            return Some(Shortage::Memory { needed: demand.gpu_memory.unwrap_or_default(), free });
        }
        if self.cpus_free < demand.cpus {
            return Some(Shortage::Cpus { needed: demand.cpus, free: self.cpus_free });
        }
        let memory = Shortage::HostMemory { needed: demand.memory, free: self.memory_free };
        (self.memory_free < demand.memory).then_some(memory)
    }

    fn too_few_devices(&self, needed: Gpus) -> Shortage {
        Shortage::Devices {
            needed,
            whole: self.devices.iter().filter(|device| device.free == Share::WHOLE).count() as u32,
            share: self.devices.iter().map(|device| device.free).max().unwrap_or_default(),
        }
    }

    /// Whether a part of a placement fits what is left.
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn fits(&self, demand: &Demand, part: &RankPlacement) -> Result<(), String> {
        let name = &self.name;
        for (position, id) in part.devices.iter().enumerate() {
            let device = self.devices.iter().find(|device| device.id == *id);
            let device = device.ok_or_else(|| format!("{name} has no device {id}"))?;
            if part.devices[..position].contains(id) {
                return Err(format!("the plan names device {id} of {name} twice"));
            }
            if part.share != demand.share_of(device.memory) {
                return Err(format!("the plan gives another share of {id} of {name} than the job needs"));
            }
            if !device.has_place(demand) || !device.has_memory(demand) {
                return Err(format!("device {id} of {name} has no room any more"));
            }
        }
        if !self.has_host_room(demand) {
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
            device.sharing.places_free = device.sharing.places_free.map(|left| left.saturating_sub(1));
        }
    }

    fn give_back(&mut self, demand: &Demand, part: &RankPlacement) {
        self.cpus_free = (self.cpus_free + demand.cpus).min(self.cpus);
        self.memory_free = (self.memory_free + demand.memory).min(self.memory);
        for device in self.devices.iter_mut().filter(|device| part.devices.contains(&device.id)) {
            device.free = (device.free + part.share).min(Share::WHOLE);
            let claimed = demand.gpu_memory.unwrap_or_default();
            let most = device.memory.unwrap_or_default();
            device.memory_free = device.memory_free.map(|free| (free + claimed).min(most));
            device.sharing.places_free = device.sharing.places_free.map(|left| left + 1);
        }
    }
}

impl DeviceView {
    /// Whether it could hold one rank of the demand if nothing were on it.
    fn could_ever_hold(&self, demand: &Demand) -> bool {
        let fits = match (demand.gpu_memory, self.memory) {
            (Some(needed), Some(memory)) if self.would_share(demand) => {
                memory >= needed + self.sharing.reserve
            }
            (Some(needed), Some(memory)) => memory >= needed,
            (None, _) | (Some(_), None) => true,
        };
        fits && self.allows(demand)
    }

    /// Whether it has enough of itself left.
    fn has_place(&self, demand: &Demand) -> bool {
        self.intake == Intake::Open
            && self.allows(demand)
            && self.free >= demand.share_of(self.memory)
            && self.sharing.places_free != Some(0)
    }

    /// Who shares leaves a reserve. Who does not know what it needs gets no device of which strangers hold more
    /// than a tenth.
    fn has_memory(&self, demand: &Demand) -> bool {
        match (demand.gpu_memory, self.memory_free) {
            (Some(needed), Some(free)) if self.would_share(demand) => free >= needed + self.sharing.reserve,
            (Some(needed), Some(free)) => free >= needed,
            (None, Some(_)) => self.foreign_memory.0 <= self.memory.unwrap_or_default().0 / 10,
            (None | Some(_), None) => true,
        }
    }

    /// Whether it may be shared as the demand wants it.
    fn allows(&self, demand: &Demand) -> bool {
        match (self.sharing.mode, demand.limits) {
            (SharingMode::Enforced, _) | (SharingMode::Unenforced, Limits::BestEffort) => true,
            (SharingMode::Unenforced, Limits::Enforced) | (SharingMode::Alone, _) => {
                !self.would_share(demand)
            }
        }
    }

    fn would_share(&self, demand: &Demand) -> bool {
        demand.share_of(self.memory) < Share::WHOLE
    }
}
