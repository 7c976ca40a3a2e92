//! The networks of all agents in plain Rust.

use cohabit_policy::maifs::{JointObservation, JointValues, PAIR_FEATURES, SERVER_FEATURES, TASK_FEATURES};

use super::dense::{Dense, DenseMlp, RowAttention, RowNorm};
use super::stored_tensors::{StoredTensors, WeightsError};
use crate::maifs::feature_scales::{FeatureScales, scale_rows};
use crate::maifs::shape::{BLOCK_HIDDEN, BLOCKS, FACTORS, IDLE_HIDDEN, NetworkVariant, PAIR_INPUTS, WIDTH};
use crate::networks::elementary::gelu;

/// The networks of all agents with the scales of their features.
#[derive(Debug)]
pub(crate) struct AgentInference {
    scales: FeatureScales,
    levels: usize,
    server: DenseMlp,
    task: DenseMlp,
    queue: RowAttention,
    join: Dense,
    join_norm: RowNorm,
    blocks: Vec<RowBlock>,
    start: RowPairHead,
    idle: DenseMlp,
    factors: RowPairHead,
    idle_factors: Dense,
    bilinear: Vec<f32>,
    kappa: f32,
    state: DenseMlp,
}

#[derive(Debug)]
struct RowBlock {
    others: Option<(RowAttention, Dense)>,
    others_norm: RowNorm,
    own: DenseMlp,
    own_norm: RowNorm,
}

/// A head for a job on a node, with the parts of its first layer.
#[derive(Debug)]
struct RowPairHead {
    node: Dense,
    job: Dense,
    pair: Dense,
    bias: Vec<f32>,
    second: Dense,
}

impl AgentInference {
    /// # Errors
    ///
    /// If a tensor is missing or has another shape.
    pub(crate) fn of(
        tensors: &StoredTensors<'_>,
        variant: NetworkVariant,
        scales: &FeatureScales,
    ) -> Result<AgentInference, WeightsError> {
        let kappa = tensors.numbers("payoff.kappa", &[1])?[0];
        Ok(AgentInference {
            scales: scales.clone(),
            levels: variant.levels,
            server: DenseMlp::of(tensors, "server", [SERVER_FEATURES, WIDTH, WIDTH])?,
            task: DenseMlp::of(tensors, "task", [TASK_FEATURES, WIDTH, WIDTH])?,
            queue: RowAttention::of(tensors, "queue")?,
            join: Dense::without_bias(tensors, "join", 2 * WIDTH, WIDTH)?,
            join_norm: RowNorm::of(tensors, "join.norm")?,
            blocks: (0..BLOCKS)
                .map(|at| RowBlock::of(tensors, at, variant.attention))
                .collect::<Result<_, WeightsError>>()?,
            start: RowPairHead::of(tensors, "start", variant.levels)?,
            idle: DenseMlp::of(tensors, "idle", [WIDTH, IDLE_HIDDEN, 1])?,
            factors: RowPairHead::of(tensors, "payoff.factors", FACTORS)?,
            idle_factors: Dense::of(tensors, "payoff.idle", WIDTH, FACTORS)?,
            bilinear: tensors.numbers("payoff.bilinear", &[FACTORS, FACTORS])?,
            kappa: kappa.exp().ln_1p(),
            state: DenseMlp::of(tensors, "state", [WIDTH, WIDTH, 1])?,
        })
    }

    /// L: the number of levels.
    pub(crate) fn levels(&self) -> usize {
        self.levels
    }

    /// The values of an observation.
    ///
    /// # Panics
    ///
    /// If it has another number of levels.
    pub(crate) fn values(&self, observation: &JointObservation) -> JointValues {
        let shape = observation.shape();
        assert_eq!(shape.levels, self.levels, "observations have the levels of the agents");
        let jobs = self.task.forward(&scale_rows(&self.scales.tasks, observation.tasks()));
        let nodes = self.encode(observation, &jobs);
        let pairs = scale_rows(&self.scales.pairs, observation.pairs());
        let start = self.start.forward(&nodes, &jobs, &pairs);
        let factors = self.factors.forward(&nodes, &jobs, &pairs);
        let mut utilities = joined(&self.idle.forward(&nodes), &start, 1, shape.jobs * self.levels);
        for (row, has_node) in utilities.chunks_mut(shape.actions()).zip(observation.has_node()) {
            if !has_node {
                row.fill(0.0);
            }
        }
        JointValues {
            shape,
            utilities,
            factors: joined(&self.idle_factors.forward(&nodes), &factors, FACTORS, shape.jobs * FACTORS),
            bilinear: self.bilinear.clone(),
            kappa: self.kappa,
            state: self.state(observation, &nodes),
        }
    }

    /// e: the nodes, `[V, WIDTH]`.
    fn encode(&self, observation: &JointObservation, jobs: &[f32]) -> Vec<f32> {
        let servers = self.server.forward(&scale_rows(&self.scales.servers, observation.servers()));
        let queue = self.queue.forward(&servers, jobs, |_, job| observation.has_job()[job]);
        let mut nodes = self.join.forward(&joined(&servers, &queue, WIDTH, WIDTH));
        self.join_norm.apply(&mut nodes);
        for block in &self.blocks {
            block.apply(&mut nodes, observation.has_node());
        }
        nodes
    }

    fn state(&self, observation: &JointObservation, nodes: &[f32]) -> f32 {
        let weight = 1.0 / observation.agents() as f32;
        let mut mean = [0.0; WIDTH];
        for (row, _) in nodes.chunks_exact(WIDTH).zip(observation.has_node()).filter(|(_, has)| **has) {
            mean.iter_mut().zip(row).for_each(|(mean, value)| *mean += value * weight);
        }
        self.state.forward(&mean)[0]
    }
}

impl RowBlock {
    fn of(tensors: &StoredTensors<'_>, at: usize, attention: bool) -> Result<RowBlock, WeightsError> {
        let name = |part: &str| format!("block{at}.{part}");
        let others = || -> Result<(RowAttention, Dense), WeightsError> {
            let output = Dense::without_bias(tensors, &name("others.output"), WIDTH, WIDTH)?;
            Ok((RowAttention::of(tensors, &name("others"))?, output))
        };
        Ok(RowBlock {
            others: if attention { Some(others()?) } else { None },
            others_norm: RowNorm::of(tensors, &name("others.norm"))?,
            own: DenseMlp::of(tensors, &name("own"), [WIDTH, BLOCK_HIDDEN, WIDTH])?,
            own_norm: RowNorm::of(tensors, &name("own.norm"))?,
        })
    }

    fn apply(&self, nodes: &mut [f32], has_node: &[bool]) {
        if let Some((attention, output)) = &self.others {
            let attended = attention.forward(nodes, nodes, |own, other| own != other && has_node[other]);
            add(nodes, &output.forward(&attended));
        }
        self.others_norm.apply(nodes);
        let own = self.own.forward(nodes);
        add(nodes, &own);
        self.own_norm.apply(nodes);
    }
}

impl RowPairHead {
    fn of(tensors: &StoredTensors<'_>, name: &str, to: usize) -> Result<RowPairHead, WeightsError> {
        let first = Dense::of(tensors, &format!("{name}.first"), PAIR_INPUTS, WIDTH)?;
        Ok(RowPairHead {
            node: first.part(0, WIDTH),
            job: first.part(WIDTH, WIDTH),
            pair: first.part(2 * WIDTH, PAIR_FEATURES),
            bias: first.bias().to_vec(),
            second: Dense::of(tensors, &format!("{name}.second"), WIDTH, to)?,
        })
    }

    /// The outputs for each job on each node, `[V * K, to]`.
    fn forward(&self, nodes: &[f32], jobs: &[f32], pairs: &[f32]) -> Vec<f32> {
        let mut nodes = self.node.forward(nodes);
        nodes.chunks_exact_mut(WIDTH).for_each(|row| add(row, &self.bias));
        let jobs = self.job.forward(jobs);
        let mut hidden = self.pair.forward(pairs);
        for (of_node, node) in hidden.chunks_exact_mut(jobs.len().max(1)).zip(nodes.chunks_exact(WIDTH)) {
            for (row, job) in of_node.chunks_exact_mut(WIDTH).zip(jobs.chunks_exact(WIDTH)) {
                add(row, node);
                add(row, job);
            }
        }
        gelu(&mut hidden);
        self.second.forward(&hidden)
    }
}

fn add(to: &mut [f32], values: &[f32]) {
    to.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// Rows of two kinds beside each other.
fn joined(left: &[f32], right: &[f32], left_width: usize, right_width: usize) -> Vec<f32> {
    let rows = left.len() / left_width;
    let mut joined = Vec::with_capacity(left.len() + right.len());
    for row in 0..rows {
        joined.extend_from_slice(&left[row * left_width..(row + 1) * left_width]);
        joined.extend_from_slice(&right[row * right_width..(row + 1) * right_width]);
    }
    joined
}
