//! What is free while a plan is made: the nodes of the view, from which started jobs are taken.
//!
//! This file alone decides whether a demand fits a node, and `device_fit.rs` whether it fits a device. The
//! head uses both to check plans, and to refuse at submission what no node can ever hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{
    Demand, DeviceId, HostShare, JobId, NodeId, Placement, RankPlacement, ReservationTerms, Spread,
};

use crate::{DeviceView, NodeView, NodeWindow};

/// All nodes and what is left of them. Only nodes that changed are copied.
#[derive(Debug, Clone)]
pub struct FreeNodes<'v> {
    view: &'v [NodeView],
    /// Nodes that changed since, by position.
    touched: BTreeMap<usize, Arc<NodeView>>,
}

impl<'v> FreeNodes<'v> {
    /// Everything that the view says is free.
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

    /// The nodes of the view, without the changes since.
    pub(crate) const fn untouched(&self) -> &'v [NodeView] {
        self.view
    }

    /// The nodes that changed since, by position.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (usize, &NodeView)> {
        self.touched.iter().map(|(position, node)| (*position, &**node))
    }

    /// The node at a position of [`FreeNodes::nodes`].
    ///
    /// # Panics
    /// If the position is past the last node.
    #[must_use]
    pub fn node(&self, position: usize) -> &NodeView {
        self.touched.get(&position).map_or(&self.view[position], |node| &**node)
    }

    /// The position of a node in [`FreeNodes::nodes`], if it accepts jobs.
    #[must_use]
    pub fn position(&self, node: NodeId) -> Option<usize> {
        self.view.iter().position(|it| it.id == node)
    }

    /// Whether the nodes in their present condition could hold the demand if they ran no jobs.
    #[must_use]
    pub fn could_hold_when_empty(&self, demand: &Demand) -> bool {
        could_hold(self.view, demand, DeviceView::could_hold_when_empty)
    }

    /// Takes what a job with this placement uses.
    pub fn take(&mut self, demand: &Demand, placement: &Placement) {
        self.for_each_part(placement, |node, part| node.take(demand, part));
    }

    /// Takes the same, and adds the job to those of its devices.
    pub fn take_as_resident(&mut self, job: JobId, demand: &Demand, placement: &Placement) {
        self.for_each_part(placement, |node, part| {
            node.take(demand, part);
            let taken = node.devices.iter_mut().filter(|device| part.devices.contains(&device.id));
            taken.for_each(|device| device.jobs.push(job));
        });
    }

    /// Gives back what a job with this placement used.
    pub fn give_back(&mut self, demand: &Demand, placement: &Placement) {
        self.for_each_part(placement, |node, part| node.give_back(demand, part));
    }

    /// Gives back the same, and removes the job from those of its devices.
    pub(crate) fn remove_resident(&mut self, job: JobId, demand: &Demand, placement: &Placement) {
        self.for_each_part(placement, |node, part| {
            node.give_back(demand, part);
            let held = node.devices.iter_mut().filter(|device| part.devices.contains(&device.id));
            held.for_each(|device| device.jobs.retain(|resident| *resident != job));
        });
    }

    /// A job holds so much of a node instead of so much.
    pub fn change_host_share(&mut self, node: NodeId, from: HostShare, to: HostShare) {
        if let Some(position) = self.position(node) {
            let node = self.touched.entry(position).or_insert_with(|| Arc::new(self.view[position].clone()));
            let node = Arc::make_mut(node);
            node.free(from);
            node.hold(to);
        }
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

/// Whether these nodes could hold the demand if they ran no jobs, all their devices were in service and no
/// other program used them.
#[must_use]
pub fn could_ever_hold(nodes: &[NodeView], demand: &Demand) -> bool {
    could_hold(nodes, demand, DeviceView::could_ever_hold)
}

fn could_hold(nodes: &[NodeView], demand: &Demand, holds: fn(&DeviceView, &Demand) -> bool) -> bool {
    let devices = nodes.iter().filter_map(|node| node.devices_that(demand, holds));
    match demand.spread {
        Spread::Even => devices.filter(|count| *count >= demand.devices()).count() >= demand.nodes as usize,
        Spread::Free => devices.sum::<u32>() >= demand.devices(),
    }
}

/// Checks that a placement has the shape that the demand asks for, whatever is free.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn check_shape(demand: &Demand, placement: &Placement) -> Result<(), String> {
    let devices = |part: &RankPlacement| part.devices.len();
    match demand.spread {
        Spread::Even if placement.parts.len() != demand.nodes as usize => {
            return Err(format!(
                "the job needs {} nodes; the plan gives {}",
                demand.nodes,
                placement.parts.len()
            ));
        }
        Spread::Even if placement.parts.iter().any(|part| devices(part) != demand.devices() as usize) => {
            return Err("the plan gives a different number of devices on a node than the job needs".into());
        }
        Spread::Free if placement.parts.iter().map(devices).sum::<usize>() != demand.devices() as usize => {
            return Err("the plan gives a different number of devices than the job needs".into());
        }
        Spread::Free if placement.parts.iter().any(|part| part.devices.is_empty()) => {
            return Err("the plan names a node without a device".into());
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

/// Where a placement numbers its ranks, each number from 0 on must occur once.
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
    /// Whether it takes demands of this account, is not reserved for others, can fetch the code of such jobs,
    /// has ports for applications that span nodes, and is the node that they have to be on.
    pub(crate) fn serves(&self, demand: &Demand) -> bool {
        self.takes_account(demand)
            && self.closing_window(demand).is_none()
            && (self.fetches_code || !demand.has_code)
            && (self.application_ports || !demand.spans_nodes)
            && demand.node.is_none_or(|node| node == self.id)
    }

    /// Whether it takes demands of this account.
    pub(crate) fn takes_account(&self, demand: &Demand) -> bool {
        self.owner.is_none() || self.owner == demand.account
    }

    /// The reservation that keeps the demand out: it may still be here when the reservation begins.
    pub(crate) fn closing_window(&self, demand: &Demand) -> Option<NodeWindow> {
        let ReservationTerms { admitted, leaves_within } = demand.reservations;
        let is_free_to_stay = |window: &NodeWindow| {
            window.admits.intersects(admitted) || leaves_within.is_some_and(|span| span <= window.starts_in)
        };
        // The one that is in the way first says why.
        self.windows.iter().filter(|it| !is_free_to_stay(it)).min_by_key(|it| it.starts_in).copied()
    }

    /// How many devices could hold a rank of the demand; `None` where the node's cores or memory are too
    /// small, or the node serves others.
    fn devices_that(&self, demand: &Demand, holds: fn(&DeviceView, &Demand) -> bool) -> Option<u32> {
        let is_large_enough = self.cpus >= demand.cpus && self.memory >= demand.memory;
        (is_large_enough && self.serves(demand))
            .then(|| self.devices.iter().filter(|device| holds(device, demand)).count() as u32)
    }

    /// How many devices a rank of the demand fits; `None` where too few cores or too little memory is left,
    /// or the node serves others.
    #[must_use]
    pub fn roomy_devices(&self, demand: &Demand) -> Option<u32> {
        self.has_host_room(demand).then(|| self.roomy(demand).count() as u32)
    }

    /// The first devices that a rank of the demand fits, at most `count`.
    #[must_use]
    pub fn first_devices(&self, demand: &Demand, count: u32) -> Vec<DeviceId> {
        self.roomy(demand).take(count as usize).map(|device| device.id.clone()).collect()
    }

    /// The devices that a rank of the demand fits, in the order in which they are filled.
    pub(crate) fn roomy(&self, demand: &Demand) -> impl Iterator<Item = &DeviceView> {
        let serves = self.serves(demand);
        self.devices.iter().filter(move |device| serves && device.has_room(demand))
    }

    /// A part of a placement on these devices, with the share that the demand takes of each.
    ///
    /// Whole devices are taken whole and a share is taken of one device, so the first device speaks for all.
    #[must_use]
    pub fn part(&self, demand: &Demand, devices: Vec<DeviceId>) -> RankPlacement {
        let taken = devices.first().and_then(|id| self.devices.iter().find(|device| device.id == *id));
        let share = taken.map_or(demand.share(), |device| device.share_for(demand));
        let host = demand.up_to.map(|_| self.starting_share(demand, devices.len() as u32));
        RankPlacement { node: self.id, devices, share, ranks: Vec::new(), host }
    }

    /// Whether it serves the demand, and enough cores and host memory are left.
    pub(crate) fn has_host_room(&self, demand: &Demand) -> bool {
        self.serves(demand)
            && self.cpus_free >= demand.cpus
            && self.memory_free >= demand.memory
            && self.has_place()
    }

    /// Whether it runs one more job.
    pub(crate) fn has_place(&self) -> bool {
        self.max_jobs.is_none_or(|most| self.jobs < most)
    }

    /// Checks that a part of a placement fits what is left.
    ///
    /// # Errors
    /// A sentence that says what does not fit.
    pub fn fits(&self, demand: &Demand, part: &RankPlacement) -> Result<(), String> {
        let name = &self.name;
        if self.closing_window(demand).is_some() {
            return Err(format!("node {name} is reserved, or will be before the job has left it"));
        }
        if !self.serves(demand) {
            return Err(format!("node {name} does not run jobs of its account"));
        }
        for (position, id) in part.devices.iter().enumerate() {
            let device = self.devices.iter().find(|device| device.id == *id);
            let device = device.ok_or_else(|| format!("node {name} has no device {id}"))?;
            if part.devices[..position].contains(id) {
                return Err(format!("the plan names device {id} of node {name} twice"));
            }
            if part.share != device.share_for(demand) {
                return Err(format!(
                    "the plan gives a different share of device {id} of node {name} than the job needs"
                ));
            }
            if !device.has_room(demand) {
                return Err(format!("device {id} of node {name} has too little left"));
            }
        }
        self.check_host_share(demand, part)?;
        if !self.has_host_room(demand) || !part.host_share(demand).is_within(self.host_free()) {
            return Err(format!(
                "node {name} has too few cores or too little memory left, or runs too many jobs"
            ));
        }
        Ok(())
    }

    /// Takes what a part of a placement uses.
    pub(crate) fn take(&mut self, demand: &Demand, part: &RankPlacement) {
        self.jobs += 1;
        self.hold(part.host_share(demand));
        for device in self.devices.iter_mut().filter(|device| part.devices.contains(&device.id)) {
            device.take(demand, part.share);
        }
    }

    /// Gives back what a part of a placement used.
    pub(crate) fn give_back(&mut self, demand: &Demand, part: &RankPlacement) {
        self.jobs = self.jobs.saturating_sub(1);
        self.free(part.host_share(demand));
        for device in self.devices.iter_mut().filter(|device| part.devices.contains(&device.id)) {
            device.give_back(demand, part.share);
        }
    }
}
