//! The mapper's model written out message by message, from the definitions alone: who sends whom how many
//! bytes in each step. The compact form is compared with it. It shares no arithmetic with the product.

use cohabit_types::ModelDescription;

use crate::mapping::{IterationModel, NicShare, Server, Slot};

/// Bytes that one vertex sends another at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) bytes: f64,
}

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

    /// What crosses the edges of the pipeline: activations to every replica of the next stage, each an equal
    /// part, and gradients of the same size back.
    fn pipeline_messages(&self) -> Vec<Message> {
        let stage_of = self.stage_of();
        let mut messages = Vec::new();
        for from in 0..stage_of.len() {
            for to in 0..stage_of.len() {
                if stage_of[to] == stage_of[from] + 1 {
                    let (stage, next) =
                        (&self.model.stages[stage_of[from]], &self.model.stages[stage_of[to]]);
                    let pairs = f64::from(stage.replicas) * f64::from(next.replicas);
                    let bytes = stage.activation_bytes / pairs;
                    messages.extend([Message { from, to, bytes }, Message { from: to, to: from, bytes }]);
                }
            }
        }
        messages
    }

    /// The replicas of each stage in the order of their ring: by slot.
    fn rings(&self) -> Vec<Vec<usize>> {
        let stage_of = self.stage_of();
        let ring = |stage| {
            let mut ring: Vec<usize> = (0..stage_of.len()).filter(|it| stage_of[*it] == stage).collect();
            ring.sort_by_key(|vertex| (self.slot_of[*vertex], *vertex));
            ring
        };
        (0..self.model.stages.len()).map(ring).collect()
    }

    /// What the rings send, each in the order of its replicas' slots.
    pub(super) fn ring_messages(&self) -> Vec<Message> {
        let rings = self.rings().into_iter().zip(&self.model.stages);
        rings.flat_map(|(ring, stage)| all_reduce(&ring, stage.gradient_bytes)).collect()
    }

    /// Seconds in which every vertex has sent and received these messages.
    fn exchange(&self, messages: &[Message], nic_share: NicShare) -> Vec<f64> {
        let senders = self.one_way(messages.iter().map(|it| (it.from, it.to, it.bytes)), nic_share);
        let receivers = self.one_way(messages.iter().map(|it| (it.to, it.from, it.bytes)), nic_share);
        senders.into_iter().zip(receivers).map(|(sends, receives)| sends.max(receives)).collect()
    }

    /// Seconds that every vertex needs for its end of messages in one direction: what it exchanges with its
    /// own slot, then what it exchanges with others.
    fn one_way(&self, messages: impl Iterator<Item = (usize, usize, f64)>, nic_share: NicShare) -> Vec<f64> {
        let vertices = 0..self.slot_of.len();
        let (mut inside, mut outside) = (vec![0.0; vertices.len()], vec![0.0; vertices.len()]);
        for (vertex, other, bytes) in messages {
            let near = self.slot_of[vertex] == self.slot_of[other];
            let total = if near { &mut inside } else { &mut outside };
            total[vertex] += bytes;
        }
        let time = |vertex: usize| {
            let slot = self.slots[self.slot_of[vertex]];
            let server = &self.servers[slot.server];
            let share = server.network / f64::from(server.devices);
            let own = server.interconnect;
            let across = match nic_share {
                NicShare::Device => outside[vertex] / share.min(own),
                NicShare::Job => {
                    let here = vertices.clone().filter(|it| self.slot_of[*it] == self.slot_of[vertex]);
                    let ahead: f64 = here.map(|it| outside[it].min(outside[vertex])).sum();
                    (ahead / (share * f64::from(slot.count))).max(outside[vertex] / own)
                }
            };
            inside[vertex] / own + across
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
        let pipeline = self.exchange(&self.pipeline_messages(), nic_share);
        let rings = self.exchange(&self.ring_messages(), nic_share);
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

/// What a ring all-reduce sends, step by step. The bytes of `k` replicas are cut into `k` parts. In each of
/// `k - 1` steps every replica sends the next one a part, which adds its own; then every part is complete
/// somewhere, and goes around in as many steps.
fn all_reduce(ring: &[usize], bytes: f64) -> Vec<Message> {
    let parts = ring.len();
    // The replicas whose numbers each part at each replica contains, as bits.
    let mut contained: Vec<Vec<u64>> = (0..parts).map(|at| vec![1 << at; parts]).collect();
    let mut messages = Vec::new();
    for step in 0..2 * (parts - 1) {
        for at in 0..parts {
            let (next, part) = ((at + 1) % parts, (at + 2 * parts - step) % parts);
            messages.push(Message { from: ring[at], to: ring[next], bytes: bytes / parts as f64 });
            contained[next][part] |= contained[at][part];
        }
    }
    let complete = (1 << parts) - 1;
    assert!(contained.iter().flatten().all(|part| *part == complete), "a replica misses a part of the sum");
    messages
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
