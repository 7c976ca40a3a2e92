//! The mapper's model written out vertex by vertex and edge by edge, from the definitions alone: the compact
//! form is compared with it. It shares no arithmetic with the product.

use cohabit_types::ModelDescription;

use crate::mapping::{IterationModel, NicShare, Server, Slot};

/// A placement of every vertex: its slot.
pub(super) struct Placed<'m> {
    pub(super) model: &'m ModelDescription,
    pub(super) servers: &'m [Server],
    pub(super) slots: &'m [Slot],
    pub(super) slot_of: Vec<usize>,
}

impl<'m> Placed<'m> {
    pub(super) fn of_ranks(
        model: &'m ModelDescription,
        servers: &'m [Server],
        slots: &'m [Slot],
        ranks: &[Vec<u32>],
    ) -> Placed<'m> {
        let devices: u32 = model.stages.iter().map(|stage| stage.replicas).sum();
        let slot = |vertex: u32| ranks.iter().position(|on_slot| on_slot.contains(&vertex)).unwrap();
        Placed { model, servers, slots, slot_of: (0..devices).map(slot).collect() }
    }

    fn stage_of(&self) -> Vec<usize> {
        let stages = self.model.stages.iter().enumerate();
        stages.flat_map(|(stage, it)| vec![stage; it.replicas as usize]).collect()
    }

    fn pipeline_edges(&self) -> Vec<(usize, usize, f64)> {
        let stage_of = self.stage_of();
        let mut edges = Vec::new();
        for one in 0..stage_of.len() {
            for other in 0..stage_of.len() {
                if stage_of[other] == stage_of[one] + 1 {
                    let (from, to) = (&self.model.stages[stage_of[one]], &self.model.stages[stage_of[other]]);
                    let pairs = f64::from(from.replicas) * f64::from(to.replicas);
                    edges.push((one, other, 2.0 * from.activation_bytes / pairs));
                }
            }
        }
        edges
    }

    /// Directed links, in an order of the replicas by slot.
    pub(super) fn ring_edges(&self) -> Vec<(usize, usize, f64)> {
        let stage_of = self.stage_of();
        let mut edges = Vec::new();
        for (stage, node) in self.model.stages.iter().enumerate() {
            let mut ring: Vec<usize> = (0..stage_of.len()).filter(|it| stage_of[*it] == stage).collect();
            ring.sort_by_key(|vertex| (self.slot_of[*vertex], *vertex));
            let count = f64::from(node.replicas);
            let weight = 2.0 * (count - 1.0) / count * node.gradient_bytes;
            let links = (0..ring.len()).filter(|_| ring.len() > 1);
            edges.extend(links.map(|at| (ring[at], ring[(at + 1) % ring.len()], weight)));
        }
        edges
    }

    /// Seconds that every vertex exchanges over these edges.
    fn exchange(&self, edges: &[(usize, usize, f64)], nic_share: NicShare) -> Vec<f64> {
        let vertices = 0..self.slot_of.len();
        let (mut inside, mut outside) = (vec![0.0; vertices.len()], vec![0.0; vertices.len()]);
        for (one, other, weight) in edges {
            let bytes = if self.slot_of[*one] == self.slot_of[*other] { &mut inside } else { &mut outside };
            bytes[*one] += weight;
            bytes[*other] += weight;
        }
        let time = |vertex: usize| {
            let slot = self.slots[self.slot_of[vertex]];
            let server = &self.servers[slot.server];
            let share = server.network / f64::from(server.devices);
            let own = server.interconnect;
            let leaving = match nic_share {
                NicShare::Device => outside[vertex] / (2.0 * share.min(own)),
                NicShare::Job => {
                    let here = vertices.clone().filter(|it| self.slot_of[*it] == self.slot_of[vertex]);
                    let ahead: f64 = here.map(|it| outside[it].min(outside[vertex])).sum();
                    (ahead / (2.0 * share * f64::from(slot.count))).max(outside[vertex] / (2.0 * own))
                }
            };
            inside[vertex] / (2.0 * own) + leaving
        };
        vertices.clone().map(time).collect()
    }

    pub(super) fn alpha(&self, iteration: IterationModel, nic_share: NicShare) -> f64 {
        let stage_of = self.stage_of();
        let computing = |vertex: usize| {
            let stage = &self.model.stages[stage_of[vertex]];
            let device = &self.servers[self.slots[self.slot_of[vertex]].server].model;
            stage.compute_seconds_on.get(&**device).copied().unwrap_or(stage.compute_seconds)
        };
        let pipeline = self.exchange(&self.pipeline_edges(), nic_share);
        let rings = self.exchange(&self.ring_edges(), nic_share);
        let pass = |vertex: usize| computing(vertex) + pipeline[vertex];
        let all = 0..stage_of.len();
        match iteration {
            IterationModel::Bottleneck => all.map(|it| pass(it) + rings[it]).fold(0.0, f64::max),
            IterationModel::Synchronous { micro_batches } => {
                let stage =
                    |stage| all.clone().filter(|it| stage_of[*it] == stage).map(pass).fold(0.0, f64::max);
                let stages: Vec<f64> = (0..self.model.stages.len()).map(stage).collect();
                let slowest = stages.iter().copied().fold(0.0, f64::max);
                let parts = f64::from(micro_batches);
                let summed = rings.iter().copied().fold(0.0, f64::max);
                (stages.iter().sum::<f64>() + (parts - 1.0) * slowest) / parts + summed
            }
        }
    }
}

/// The least time over all assignments of vertices to the slots.
pub(super) fn optimum(
    model: &ModelDescription,
    servers: &[Server],
    slots: &[Slot],
    iteration: IterationModel,
) -> f64 {
    let devices: u32 = model.stages.iter().map(|stage| stage.replicas).sum();
    let mut left: Vec<u32> = slots.iter().map(|slot| slot.count).collect();
    let mut slot_of = Vec::new();
    let mut least = f64::INFINITY;
    assign(devices as usize, &mut left, &mut slot_of, &mut |slot_of| {
        let placed = Placed { model, servers, slots, slot_of: slot_of.to_vec() };
        least = least.min(placed.alpha(iteration, NicShare::Device));
    });
    least
}

fn assign(devices: usize, left: &mut [u32], slot_of: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
    if slot_of.len() == devices {
        return visit(slot_of);
    }
    for slot in 0..left.len() {
        if left[slot] > 0 {
            left[slot] -= 1;
            slot_of.push(slot);
            assign(devices, left, slot_of, visit);
            slot_of.pop();
            left[slot] += 1;
        }
    }
}
