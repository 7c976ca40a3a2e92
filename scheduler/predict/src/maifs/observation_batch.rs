//! Observations as tensors, for training.
//!
//! Observations of different sizes are padded to the largest; padding changes nothing.

use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor};
use cohabit_policy::maifs::{JointObservation, PAIR_FEATURES, SERVER_FEATURES, TASK_FEATURES};

use super::feature_scales::{FeatureScales, scale_rows};

/// N observations as tensors.
#[derive(Debug)]
pub(super) struct ObservationBatch {
    pub(super) count: usize,
    /// V, with padding.
    pub(super) nodes: usize,
    /// K, with padding.
    pub(super) jobs: usize,
    pub(super) levels: usize,
    /// `[N * V, 18]`, scaled.
    pub(super) servers: Tensor,
    /// `[N * K, 16]`, scaled.
    pub(super) tasks: Tensor,
    /// `[N * V * K, 4]`, scaled.
    pub(super) pairs: Tensor,
    /// 1 for nodes that are not padding, `[N, V, 1]`.
    pub(super) has_node: Tensor,
    /// The mean over nodes as weights: 1/V for nodes that are not padding, `[N, V]`.
    pub(super) node_weights: Tensor,
    /// 1 where a node attends to another one, `[N, V, V]`.
    pub(super) other_nodes: Tensor,
    /// 1 where a node attends to a job of the window, `[N, V, K]`.
    pub(super) window: Tensor,
    /// Whether each action is legal, `[N][V * (1 + K * L)]`; padding has only action 0.
    pub(super) legal: Vec<Vec<bool>>,
}

impl ObservationBatch {
    /// # Errors
    ///
    /// If the tensor library reports one.
    pub(super) fn of(
        observations: &[Arc<JointObservation>],
        scales: &FeatureScales,
        precision: DType,
    ) -> Result<ObservationBatch> {
        let largest = |size: fn(&JointObservation) -> usize| observations.iter().map(|it| size(it)).max();
        let nodes = largest(|it| it.shape().nodes).unwrap_or_default();
        let jobs = largest(|it| it.shape().jobs).unwrap_or_default();
        let levels = largest(|it| it.shape().levels).unwrap_or_default();
        let mut numbers = Numbers::default();
        for observation in observations {
            numbers.add(observation, scales, nodes, jobs);
        }
        let count = observations.len();
        let tensor = |values: Vec<f32>, shape: &[usize]| {
            Tensor::from_vec(values, shape, &Device::Cpu)?.to_dtype(precision)
        };
        Ok(ObservationBatch {
            count,
            nodes,
            jobs,
            levels,
            servers: tensor(numbers.servers, &[count * nodes, SERVER_FEATURES])?,
            tasks: tensor(numbers.tasks, &[count * jobs, TASK_FEATURES])?,
            pairs: tensor(numbers.pairs, &[count * nodes * jobs, PAIR_FEATURES])?,
            has_node: tensor(numbers.has_node, &[count, nodes, 1])?,
            node_weights: tensor(numbers.node_weights, &[count, nodes])?,
            other_nodes: tensor(numbers.other_nodes, &[count, nodes, nodes])?,
            window: tensor(numbers.window, &[count, nodes, jobs])?,
            legal: numbers.legal,
        })
    }

    /// The number of actions of an agent.
    pub(super) fn actions(&self) -> usize {
        1 + self.jobs * self.levels
    }
}

/// The numbers of the tensors.
#[derive(Default)]
struct Numbers {
    servers: Vec<f32>,
    tasks: Vec<f32>,
    pairs: Vec<f32>,
    has_node: Vec<f32>,
    node_weights: Vec<f32>,
    other_nodes: Vec<f32>,
    window: Vec<f32>,
    legal: Vec<Vec<bool>>,
}

impl Numbers {
    fn add(&mut self, observation: &JointObservation, scales: &FeatureScales, nodes: usize, jobs: usize) {
        let shape = observation.shape();
        let number = |is: bool| f32::from(u8::from(is));
        let has_node = |node: usize| node < shape.nodes && observation.has_node()[node];
        let has_job = |job: usize| job < shape.jobs && observation.has_job()[job];
        extend_padded(
            &mut self.servers,
            scale_rows(&scales.servers, observation.servers()),
            nodes * SERVER_FEATURES,
        );
        extend_padded(&mut self.tasks, scale_rows(&scales.tasks, observation.tasks()), jobs * TASK_FEATURES);
        let pairs = scale_rows(&scales.pairs, observation.pairs());
        for node in 0..nodes {
            let row = shape.jobs * PAIR_FEATURES;
            let own = if node < shape.nodes { &pairs[node * row..(node + 1) * row] } else { &[] };
            extend_padded(&mut self.pairs, own.to_vec(), jobs * PAIR_FEATURES);
        }
        let weight = 1.0 / observation.agents() as f32;
        for node in 0..nodes {
            self.has_node.push(number(has_node(node)));
            self.node_weights.push(number(has_node(node)) * weight);
            self.other_nodes.extend((0..nodes).map(|other| number(other != node && has_node(other))));
            self.window.extend((0..jobs).map(|job| number(has_job(job))));
        }
        let actions = 1 + jobs * shape.levels;
        let mut legal: Vec<bool> = (0..nodes * actions).map(|at| at % actions == 0).collect();
        for node in 0..shape.nodes {
            legal[node * actions..][..shape.actions()].copy_from_slice(observation.legal_of(node));
        }
        self.legal.push(legal);
    }
}

/// Appends values and zeros, `count` together.
fn extend_padded(to: &mut Vec<f32>, values: Vec<f32>, count: usize) {
    let end = to.len() + count;
    to.extend(values);
    to.resize(end, 0.0);
}
