//! Which replicas go on which server, greedily: the step HEAVY-EDGE.
//!
//! A server's group grows from the two ends of the heaviest edge, always by the replica that exchanges most
//! with the group. Since replicas of a stage are interchangeable, a group is the number of replicas of each
//! stage. Only bytes count here, never seconds.

use super::graph::JobGraph;

/// What the first group grows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The ends of the heaviest edge, as for all further groups.
    HeaviestEdge,
    /// One replica of this stage.
    Stage(usize),
}

/// Replicas of each stage on each server, a row for each of `counts`, which sum up to the graph's replicas.
pub(super) fn heavy_edge(graph: &JobGraph, counts: &[u32], start: Start) -> Vec<u32> {
    let stages = graph.stages().len();
    let mut left: Vec<u32> = graph.stages().iter().map(|stage| stage.replicas).collect();
    let mut rows = Vec::with_capacity(stages * counts.len());
    let mut unplaced = graph.devices();
    for (index, count) in counts.iter().copied().enumerate() {
        if count == unplaced {
            rows.append(&mut left);
            rows.resize(stages * counts.len(), 0);
            break;
        }
        let mut group = Group { graph, left: &mut left, members: vec![0; stages], gains: vec![0.0; stages] };
        let start = if index == 0 { start } else { Start::HeaviestEdge };
        let seeded = group.seed(start, count);
        (seeded..count).for_each(|_| group.grow());
        rows.append(&mut group.members);
        unplaced -= count;
    }
    rows
}

/// The group of one server while it grows.
struct Group<'g> {
    graph: &'g JobGraph,
    /// Replicas of each stage that are not placed.
    left: &'g mut [u32],
    members: Vec<u32>,
    /// Bytes that one more replica of each stage would exchange with the members over pipeline edges.
    gains: Vec<f64>,
}

impl Group<'_> {
    /// Adds the first members; returns how many.
    fn seed(&mut self, start: Start, count: u32) -> u32 {
        if count == 0 {
            return 0;
        }
        match (start, self.heaviest_edge()) {
            (Start::Stage(stage), _) => self.add(stage),
            (Start::HeaviestEdge, Some((one, other))) if count > 1 => {
                self.add(one);
                self.add(other);
                return 2;
            }
            (Start::HeaviestEdge, _) => self.add(self.least_connected()),
        }
        1
    }

    /// Adds the replica that exchanges most with the members; among equals, the one of the first stage.
    fn grow(&mut self) {
        let gain = |stage: usize| self.gains[stage] + self.ring_gain(stage);
        self.add(first_best(self.candidates(), gain));
    }

    fn add(&mut self, stage: usize) {
        self.left[stage] -= 1;
        self.members[stage] += 1;
        for (other, weight) in self.graph.neighbors(stage) {
            self.gains[other] += weight;
        }
    }

    /// A stage's members are neighbors on the ring: one more has one link to them, the last one two.
    fn ring_gain(&self, stage: usize) -> f64 {
        let node = &self.graph.stages()[stage];
        match self.members[stage] {
            0 => 0.0,
            members if members + 1 == node.replicas => 2.0 * node.ring_link,
            _ => node.ring_link,
        }
    }

    fn candidates(&self) -> impl Iterator<Item = usize> {
        (0..self.left.len()).filter(|stage| self.left[*stage] > 0)
    }

    /// The stages at the ends of the heaviest edge between replicas that are not placed.
    fn heaviest_edge(&self) -> Option<(usize, usize)> {
        let mut heaviest = None;
        let mut most = 0.0;
        for stage in self.candidates() {
            let node = &self.graph.stages()[stage];
            let on_one_pair = if node.replicas == 2 { 2.0 } else { 1.0 };
            let ring = if self.left[stage] > 1 { on_one_pair * node.ring_link } else { 0.0 };
            let next_left = self.left.get(stage + 1).is_some_and(|left| *left > 0);
            let next = if next_left { node.to_next } else { 0.0 };
            for (weight, ends) in [(ring, (stage, stage)), (next, (stage, stage + 1))] {
                if weight > most {
                    (most, heaviest) = (weight, Some(ends));
                }
            }
        }
        heaviest
    }

    /// The stage whose replicas exchange least in total.
    fn least_connected(&self) -> usize {
        let exchanged =
            |stage: usize| self.graph.pipeline_bytes(stage) + 2.0 * self.graph.stages()[stage].ring_link;
        first_best(self.candidates(), |stage| -exchanged(stage))
    }
}

/// The first stage with the highest score.
fn first_best(stages: impl Iterator<Item = usize>, score: impl Fn(usize) -> f64) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for stage in stages {
        let score = score(stage);
        if score > best.1 {
            best = (stage, score);
        }
    }
    best.0
}
