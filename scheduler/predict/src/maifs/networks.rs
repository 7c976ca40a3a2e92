//! The networks that all agents share (section 5), as tensors with gradients.
//!
//! Deciding needs no gradients; `inference.rs` computes the same without the tensor library.

use candle_core::{D, Result, Tensor};
use cohabit_policy::maifs::{SERVER_FEATURES, TASK_FEATURES};

use super::attention::Attention;
use super::layer_norm::LayerNorm;
use super::mlp::Mlp;
use super::observation_batch::ObservationBatch;
use super::pair_head::{PairHead, PairInputs};
use super::shape::{BLOCK_HIDDEN, BLOCKS, FACTORS, HEADS, IDLE_HIDDEN, NetworkVariant, WIDTH};
use crate::networks::{Affine, Parameters};

/// k0, so that kappa = softplus(k0) is 1 before training.
const FIRST_KAPPA: f64 = 0.54;

/// Hidden numbers that are computed at once. The tensor library spreads work on 64 Ki numbers over threads
/// that wait busily, which is slower here, and much slower where several trainings share a machine.
const MOST_AT_ONCE: usize = 1 << 15;

/// The prefixes of the parameters that utilities do not depend on: payoffs, and the value of the state.
pub(super) const PAYOFF: &str = "payoff.";
/// See [`PAYOFF`].
pub(super) const STATE: &str = "state.";

/// The networks of all agents.
#[derive(Debug)]
pub(super) struct AgentNetworks {
    server: Mlp,
    task: Mlp,
    queue: Attention,
    join: Affine,
    join_norm: LayerNorm,
    blocks: Vec<Block>,
    start: PairHead,
    idle: Mlp,
    factors: PairHead,
    idle_factors: Affine,
    /// B, `[FACTORS, FACTORS]`.
    bilinear: Tensor,
    /// k0, `[1]`.
    kappa: Tensor,
    state: Mlp,
}

/// Agents attend to each other, and then each by itself.
#[derive(Debug)]
struct Block {
    /// The multi-agent attention with its output map; `None` if it is left out, as if it were 0.
    others: Option<(Attention, Affine)>,
    others_norm: LayerNorm,
    own: Mlp,
    own_norm: LayerNorm,
}

/// Encoded observations.
#[derive(Debug)]
pub(super) struct Encoded {
    /// e: the nodes, `[N * V, WIDTH]`.
    pub(super) nodes: Tensor,
    /// k: the jobs, `[N * K, WIDTH]`.
    pub(super) jobs: Tensor,
}

impl AgentNetworks {
    /// Builds the layers. Parameters are drawn in this order.
    ///
    /// # Errors
    ///
    /// If parameters are restored and one is missing or has another shape.
    pub(super) fn new(parameters: &mut Parameters, variant: NetworkVariant) -> Result<AgentNetworks> {
        let block = |parameters: &mut Parameters, at: usize| Block::new(parameters, at, variant.attention);
        Ok(AgentNetworks {
            server: Mlp::new(parameters, "server", [SERVER_FEATURES, WIDTH, WIDTH])?,
            task: Mlp::new(parameters, "task", [TASK_FEATURES, WIDTH, WIDTH])?,
            queue: Attention::new(parameters, "queue", WIDTH, HEADS)?,
            join: Affine::without_bias(parameters, "join", 2 * WIDTH, WIDTH)?,
            join_norm: LayerNorm::new(parameters, "join.norm", WIDTH)?,
            blocks: (0..BLOCKS).map(|at| block(parameters, at)).collect::<Result<_>>()?,
            start: PairHead::new(parameters, "start", variant.levels)?,
            idle: Mlp::new(parameters, "idle", [WIDTH, IDLE_HIDDEN, 1])?,
            factors: PairHead::new(parameters, &format!("{PAYOFF}factors"), FACTORS)?,
            idle_factors: Affine::new(parameters, &format!("{PAYOFF}idle"), WIDTH, FACTORS)?,
            // Payoffs begin as the penalty of conflicts alone: what imitation taught is not disturbed.
            bilinear: parameters.constant(&format!("{PAYOFF}bilinear"), (FACTORS, FACTORS), 0.0)?,
            kappa: parameters.constant(&format!("{PAYOFF}kappa"), 1, FIRST_KAPPA)?,
            state: Mlp::new(parameters, "state", [WIDTH, WIDTH, 1])?,
        })
    }

    /// e and k of a batch.
    pub(super) fn encode(&self, batch: &ObservationBatch) -> Result<Encoded> {
        let jobs = self.task.forward(&batch.tasks)?;
        let servers = self.server.forward(&batch.servers)?;
        let queue = self.queue.forward(&servers, &jobs, &batch.window)?.values;
        let joined = self.join.forward(&Tensor::cat(&[&servers, &queue], 1)?)?;
        let mut nodes = self.join_norm.forward(&joined)?;
        for block in &self.blocks {
            nodes = block.forward(&nodes, &batch.other_nodes)?;
        }
        Ok(Encoded { nodes, jobs })
    }

    /// f_i(a) of all actions, `[N, V, 1 + K * L]`.
    pub(super) fn utilities(&self, encoded: &Encoded, batch: &ObservationBatch) -> Result<Tensor> {
        let &ObservationBatch { count, nodes, jobs, .. } = batch;
        let of_nodes = encoded.nodes.reshape((count, nodes, 1, WIDTH))?;
        let of_jobs = encoded.jobs.reshape((count, 1, jobs, WIDTH))?;
        let of_pairs = batch.pairs.reshape((count, nodes, jobs, ()))?;
        let part = (MOST_AT_ONCE / (nodes * jobs * WIDTH).max(1)).max(1);
        let part_of = |from: usize| {
            let length = part.min(count - from);
            self.start.forward(&PairInputs {
                nodes: &of_nodes.narrow(0, from, length)?,
                jobs: &of_jobs.narrow(0, from, length)?,
                pairs: &of_pairs.narrow(0, from, length)?,
            })
        };
        let parts = (0..count).step_by(part).map(part_of).collect::<Result<Vec<Tensor>>>()?;
        let start = Tensor::cat(&parts, 0)?.reshape((count, nodes, jobs * batch.levels))?;
        let idle = self.idle.forward(&encoded.nodes)?.reshape((count, nodes, 1))?;
        Tensor::cat(&[&idle, &start], 2)?.broadcast_mul(&batch.has_node)
    }

    /// g_i(m_i) of one task of each agent, `[N, V, FACTORS]`. `tasks` has one for each agent, `[N * V]`; 0 is
    /// to do nothing.
    pub(super) fn factors(
        &self,
        encoded: &Encoded,
        batch: &ObservationBatch,
        tasks: &[usize],
    ) -> Result<Tensor> {
        let &ObservationBatch { count, nodes, jobs, .. } = batch;
        let device = encoded.nodes.device();
        let rows = |of: &dyn Fn(usize, usize) -> usize| {
            let rows = tasks.iter().enumerate().map(|(row, task)| of(row, task.saturating_sub(1)) as u32);
            Tensor::from_vec(rows.collect::<Vec<u32>>(), tasks.len(), device)
        };
        let inputs = PairInputs {
            nodes: &encoded.nodes,
            jobs: &encoded.jobs.index_select(&rows(&|row, job| row / nodes * jobs + job)?, 0)?,
            pairs: &batch.pairs.index_select(&rows(&|row, job| row * jobs + job)?, 0)?,
        };
        let starts: Vec<f32> = tasks.iter().map(|task| if *task == 0 { 0.0 } else { 1.0 }).collect();
        let starts = Tensor::from_vec(starts, (tasks.len(), 1), device)?.to_dtype(encoded.nodes.dtype())?;
        let busy = self.factors.forward(&inputs)?.broadcast_mul(&starts)?;
        let idle = self.idle_factors.forward(&encoded.nodes)?.broadcast_mul(&(1.0 - &starts)?)?;
        (busy + idle)?.reshape((count, nodes, FACTORS))
    }

    /// The bilinear part of the payoff of each pair of agents, `[N, V, V]`, from g_i(m_i) `[N, V, FACTORS]`.
    pub(super) fn payoffs(&self, factors: &Tensor) -> Result<Tensor> {
        let symmetric = ((&self.bilinear + self.bilinear.t()?)? * 0.5)?;
        factors.broadcast_matmul(&symmetric)?.matmul(&factors.t()?.contiguous()?)
    }

    /// kappa = softplus(k0), `[1]`.
    pub(super) fn kappa(&self) -> Result<Tensor> {
        (self.kappa.exp()? + 1.0)?.log()
    }

    /// Vs, `[N]`.
    pub(super) fn state(&self, encoded: &Encoded, batch: &ObservationBatch) -> Result<Tensor> {
        let nodes = encoded.nodes.reshape((batch.count, batch.nodes, WIDTH))?;
        let mean = nodes.broadcast_mul(&batch.node_weights.unsqueeze(2)?)?.sum(1)?;
        self.state.forward(&mean)?.squeeze(D::Minus1)
    }
}

impl Block {
    fn new(parameters: &mut Parameters, at: usize, attention: bool) -> Result<Block> {
        let name = |part: &str| format!("block{at}.{part}");
        let mut others = || -> Result<(Attention, Affine)> {
            Ok((
                Attention::new(parameters, &name("others"), WIDTH, HEADS)?,
                Affine::without_bias(parameters, &name("others.output"), WIDTH, WIDTH)?,
            ))
        };
        Ok(Block {
            others: if attention { Some(others()?) } else { None },
            others_norm: LayerNorm::new(parameters, &name("others.norm"), WIDTH)?,
            own: Mlp::new(parameters, &name("own"), [WIDTH, BLOCK_HIDDEN, WIDTH])?,
            own_norm: LayerNorm::new(parameters, &name("own.norm"), WIDTH)?,
        })
    }

    /// Nodes `[N * V, WIDTH]`, with the mask of the other nodes `[N, V, V]`.
    fn forward(&self, nodes: &Tensor, other_nodes: &Tensor) -> Result<Tensor> {
        let nodes = match &self.others {
            Some((attention, output)) => {
                let attended = attention.forward(nodes, nodes, other_nodes)?.values;
                (nodes + output.forward(&attended)?)?
            }
            None => nodes.clone(),
        };
        let nodes = self.others_norm.forward(&nodes)?;
        self.own_norm.forward(&(&nodes + self.own.forward(&nodes)?)?)
    }
}
