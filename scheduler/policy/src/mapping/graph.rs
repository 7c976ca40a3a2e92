//! A parallel training job as a graph: vertices are the replicas of its stages, edges what they send each
//! other in one iteration.
//!
//! The replicas of a stage are interchangeable and their ring is laid after they are placed, so the graph is
//! stored by stages: its size does not grow with the replicas. Vertices are numbered stage by stage.
//! Additional edges of tensor-parallel groups are not modeled.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use cohabit_types::{ModelDescription, PipelineStage};

use super::traffic::Flow;
use crate::total_order::compare_columns;

/// A graph as a key: everything on which the cost of an iteration depends, compared by value. Keys of one
/// graph share its stages, so most equal keys are found equal by address.
#[derive(Debug, Clone)]
pub(crate) struct GraphKey(Arc<[GraphStage]>);

impl Ord for GraphKey {
    fn cmp(&self, other: &GraphKey) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ordering::Equal;
        }
        let mut stages = self.0.iter().zip(&*other.0).map(|(one, other)| one.compare(other));
        self.0.len().cmp(&other.0.len()).then_with(|| stages.find(|it| it.is_ne()).unwrap_or(Ordering::Equal))
    }
}

impl PartialOrd for GraphKey {
    fn partial_cmp(&self, other: &GraphKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for GraphKey {
    fn eq(&self, other: &GraphKey) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for GraphKey {}

/// The graph of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobGraph {
    stages: Arc<[GraphStage]>,
    devices: u32,
}

/// A stage, with the bytes that its replicas exchange in one iteration.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GraphStage {
    pub(super) replicas: u32,
    /// The number of its first vertex.
    first: u32,
    /// One edge from a replica to a replica of the next stage, in both directions together: activations
    /// forward and as many bytes of gradients back; 0 in the last stage.
    pub(super) to_next: f64,
    /// One directed link of the ring that sums up its gradients, `2 (k - 1) / k` times their bytes for `k`
    /// replicas; 0 for a single one. Every replica sends over one and receives over another. With two
    /// replicas the two links connect one pair, in both directions.
    pub(super) ring_link: f64,
    compute_seconds: f64,
    compute_seconds_on: BTreeMap<String, f64>,
}

impl JobGraph {
    /// The graph of a described model, with a replica on each of `devices` devices.
    ///
    /// `None` if the description has no stages, if a stage has no replicas or a number that is negative or
    /// not finite, or if the replicas do not sum up to `devices`.
    #[must_use]
    pub fn of(model: &ModelDescription, devices: u32) -> Option<JobGraph> {
        let mut stages = Vec::with_capacity(model.stages.len());
        let mut first = 0;
        for (index, stage) in model.stages.iter().enumerate() {
            stages.push(GraphStage::of(stage, model.stages.get(index + 1), first)?);
            first = stage.replicas.checked_add(first)?;
        }
        let graph = JobGraph { stages: stages.into(), devices };
        let traffic = |stage| graph.pipeline_bytes(stage) + 2.0 * graph.stages[stage].ring_link;
        let sound =
            first == devices && devices > 0 && (0..graph.stages.len()).all(|it| traffic(it).is_finite());
        sound.then_some(graph)
    }

    /// The number of replicas, and so of devices.
    #[must_use]
    pub(crate) const fn devices(&self) -> u32 {
        self.devices
    }

    /// The graph as a key.
    #[must_use]
    pub(crate) fn key(&self) -> GraphKey {
        GraphKey(self.stages.clone())
    }

    /// A seed for draws: different for different graphs, equal in all runs.
    pub(super) fn seed(&self) -> [u64; 2] {
        hash_stages(&self.stages)
    }

    /// Everything that vertices send each other in one iteration. Rings are laid in the order of the
    /// vertices.
    pub(crate) fn flows(&self) -> Vec<Flow> {
        let pipelines = self.stages.windows(2).flat_map(|pair| {
            let (stage, next) = (&pair[0], &pair[1]);
            let pairs = stage.all().flat_map(move |one| next.all().map(move |other| (one, other)));
            pairs
                .flat_map(|(one, other)| [(one, other), (other, one)].map(|ends| (ends, stage.to_next / 2.0)))
        });
        let rings = self.stages.iter().flat_map(|stage| {
            let next = |vertex| if vertex + 1 < stage.all().end { vertex + 1 } else { stage.first };
            stage.all().map(move |vertex| ((vertex, next(vertex)), stage.ring_link))
        });
        let flow = |((from, to), bytes): ((u32, u32), f64)| Flow { from, to, bytes };
        pipelines.chain(rings).map(flow).filter(|flow| flow.bytes > 0.0).collect()
    }

    /// What each vertex computes in one iteration on a device of this model, in seconds.
    pub(crate) fn compute_seconds(&self, model: &str) -> Vec<f64> {
        self.stages.iter().flat_map(|stage| stage.all().map(|_| stage.compute_seconds_on(model))).collect()
    }

    pub(super) fn stages(&self) -> &[GraphStage] {
        &self.stages
    }

    /// The edges from a replica of this stage to other stages: the index of each neighboring stage, and the
    /// bytes of the edge to one replica of it, in both directions together.
    pub(super) fn neighbors(&self, stage: usize) -> impl Iterator<Item = (usize, f64)> {
        let before = stage.checked_sub(1).map(|at| (at, self.stages[at].to_next));
        let after = (stage + 1 < self.stages.len()).then(|| (stage + 1, self.stages[stage].to_next));
        before.into_iter().chain(after)
    }

    /// Everything that one replica exchanges with other stages, in bytes of both directions.
    pub(super) fn pipeline_bytes(&self, stage: usize) -> f64 {
        self.neighbors(stage).map(|(at, weight)| weight * f64::from(self.stages[at].replicas)).sum()
    }
}

impl GraphStage {
    fn of(stage: &PipelineStage, next: Option<&PipelineStage>, first: u32) -> Option<GraphStage> {
        let amounts = [stage.compute_seconds, stage.activation_bytes, stage.gradient_bytes];
        let sound = |amount: &f64| amount.is_finite() && *amount >= 0.0;
        let all_sound = amounts.iter().chain(stage.compute_seconds_on.values()).all(sound);
        let replicas = f64::from(stage.replicas);
        let pairs = next.map(|next| replicas * f64::from(next.replicas));
        (all_sound && stage.replicas > 0).then(|| GraphStage {
            replicas: stage.replicas,
            first,
            to_next: pairs.map_or(0.0, |pairs| 2.0 * stage.activation_bytes / pairs),
            ring_link: 2.0 * (replicas - 1.0) / replicas * stage.gradient_bytes,
            compute_seconds: stage.compute_seconds,
            compute_seconds_on: stage.compute_seconds_on.clone(),
        })
    }

    /// Compares by everything on which the cost of an iteration depends; the first vertex follows from the
    /// stages before.
    fn compare(&self, other: &GraphStage) -> Ordering {
        let GraphStage { replicas, first: _, to_next, ring_link, compute_seconds, compute_seconds_on } = self;
        replicas
            .cmp(&other.replicas)
            .then_with(|| to_next.total_cmp(&other.to_next))
            .then_with(|| ring_link.total_cmp(&other.ring_link))
            .then_with(|| compute_seconds.total_cmp(&other.compute_seconds))
            .then_with(|| compare_columns(compute_seconds_on, &other.compute_seconds_on))
    }

    /// What one replica computes in one iteration on a device of this model, in seconds.
    pub(super) fn compute_seconds_on(&self, model: &str) -> f64 {
        self.compute_seconds_on.get(model).copied().unwrap_or(self.compute_seconds)
    }

    /// What one replica computes on the usual device, in seconds.
    pub(super) const fn compute_seconds(&self) -> f64 {
        self.compute_seconds
    }

    /// The vertices of all its replicas.
    const fn all(&self) -> Range<u32> {
        self.vertices(0..self.replicas)
    }

    /// The vertices of some of its replicas, in the order of the ring.
    pub(super) const fn vertices(&self, replicas: Range<u32>) -> Range<u32> {
        self.first + replicas.start..self.first + replicas.end
    }
}

/// FNV-1a with 128 bits over everything on which the cost of an iteration depends: low half, high half. It
/// seeds draws and identifies nothing.
fn hash_stages(stages: &[GraphStage]) -> [u64; 2] {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;
    let mut hash = BASIS;
    let mut add = |bytes: &[u8]| {
        hash = bytes.iter().fold(hash, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
    };
    for stage in stages {
        add(&stage.replicas.to_le_bytes());
        let amounts = [stage.to_next, stage.ring_link, stage.compute_seconds];
        amounts.iter().for_each(|amount| add(&amount.to_bits().to_le_bytes()));
        add(&(stage.compute_seconds_on.len() as u64).to_le_bytes());
        for (model, seconds) in &stage.compute_seconds_on {
            add(&(model.len() as u64).to_le_bytes());
            add(model.as_bytes());
            add(&seconds.to_bits().to_le_bytes());
        }
    }
    [hash as u64, (hash >> 64) as u64]
}
