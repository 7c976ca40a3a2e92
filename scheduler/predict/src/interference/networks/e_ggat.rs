//! E-GGAT as its authors released it: attention over the co-location graph, edges as gains, a shared gate.
//!
//! The graph has a node for each job on the GPU and an edge between each two. The output is the time of a
//! step, scaled to the range of all measured times; the slowdown follows from the rate alone. Known
//! weaknesses of the release are kept: the edge of a pair has no effect, no node attends to itself, and short
//! steps have little weight.

use candle_core::{Result, Tensor};
use candle_nn::ops::{leaky_relu, sigmoid};

use super::batch::{Edges, SetBatch, Targets};
use super::feature_encoder::{FeatureEncoder, StepTimes};
use super::huber::huber;
use super::layers::{AttentionHead, Gate, Mode, SLOPE};
use super::network::{BaseModel, Network, NetworkOutput, TrainingOptions};
use super::scales::Scaling;
use crate::networks::{Affine, Parameters};

/// The network.
#[derive(Debug)]
pub(super) struct EGgat {
    first: Block,
    gated: Vec<Block>,
    gate: Gate,
    answer: Affine,
    /// The range of all measured step times.
    step_times: StepTimes,
}

/// Several heads, and one that combines them.
#[derive(Debug)]
struct Block {
    heads: Vec<AttentionHead>,
    together: AttentionHead,
}

/// The number of heads of all blocks but the last.
const HEADS: usize = 3;
/// The number of gated blocks with several heads, after the first and before the last block.
const MIDDLE_BLOCKS: usize = 2;
/// The error from which the loss is linear.
const LINEAR_FROM: f64 = 1.0;
/// Lower bound of divisors and of arguments of logarithms.
const LEAST: f64 = 1e-9;

impl Network for EGgat {
    const NAME: &'static str = "e-ggat";
    const TRAINING_OPTIONS: TrainingOptions = TrainingOptions {
        ensemble: 1,
        width: 64,
        epochs: 300,
        patience: 100,
        batch: 64,
        learning_rate: 1e-3,
        final_rate_part: 0.1,
        weight_decay: 0.0,
        max_gradient_norm: 1.0,
    };
    const SCALING: Scaling = Scaling::Range;
    const BASE_MODEL: BaseModel = BaseModel::Nothing;
    const EDGES: Edges = Edges::AsReleased;

    fn new(parameters: &mut Parameters, encoder: &FeatureEncoder, width: usize) -> Result<EGgat> {
        let block = |parameters: &mut Parameters, at: usize, from, heads| {
            Block::new(parameters, &format!("block{at}"), from, width, heads)
        };
        let first = block(parameters, 1, encoder.width(), HEADS)?;
        let middle = (2..2 + MIDDLE_BLOCKS).map(|at| block(parameters, at, width, HEADS));
        let mut gated: Vec<Block> = middle.collect::<Result<_>>()?;
        gated.push(block(parameters, 2 + MIDDLE_BLOCKS, width, 0)?);
        Ok(EGgat {
            first,
            gated,
            gate: Gate::new(parameters, "gate", width)?,
            answer: Affine::new(parameters, "answer", width, 1)?,
            step_times: encoder.step_times,
        })
    }

    fn forward(&self, batch: &SetBatch, _: &mut Mode<'_>) -> Result<NetworkOutput> {
        let seconds = self.part_of_range(batch)?.affine(self.step_times.range, self.step_times.shortest)?;
        let slowdown = (seconds * &batch.rates)?.maximum(LEAST)?;
        // Without the rate alone, no slowdown follows from a time.
        let ln_slowdown = batch.rates.gt(0.0)?.where_cond(&slowdown.log()?, &batch.rates.zeros_like()?)?;
        Ok(ln_slowdown.into())
    }

    /// Smooth L1 loss of the scaled times.
    fn loss(&self, batch: &SetBatch, targets: &Targets, _: &mut Mode<'_>) -> Result<Tensor> {
        let seconds = (targets.ln_slowdown.exp()? / batch.rates.maximum(LEAST)?)?;
        let measured = ((seconds - self.step_times.shortest)? / self.step_times.range)?;
        let error = huber(&(self.part_of_range(batch)? - measured)?, LINEAR_FROM)?;
        let counts = (targets.weights.gt(0.0)?.mul(&batch.rates.gt(0.0)?)?).to_dtype(error.dtype())?;
        let all = counts.sum_all()?.maximum(1.0)?;
        (error * counts)?.sum_all()? / all
    }
}

impl EGgat {
    /// The time of a step as a fraction of the range of all, `[rows, 1]`.
    fn part_of_range(&self, batch: &SetBatch) -> Result<Tensor> {
        let mut members = self.first.forward(&batch.numbers, batch)?;
        for block in &self.gated {
            let output = block.forward(&members, batch)?;
            members = leaky_relu(&self.gate.forward(&output, &members)?, SLOPE)?;
        }
        sigmoid(&self.answer.forward(&members)?)
    }
}

impl Block {
    /// A block; without heads, the combining head attends to the members themselves.
    fn new(
        parameters: &mut Parameters,
        name: &str,
        from: usize,
        width: usize,
        heads: usize,
    ) -> Result<Block> {
        let head = |at: usize| AttentionHead::new(parameters, &format!("{name}.head{at}"), from, width);
        let heads: Vec<AttentionHead> = (1..=heads).map(head).collect::<Result<_>>()?;
        let attended_members = if heads.is_empty() { from } else { heads.len() * width };
        let together = AttentionHead::new(parameters, &format!("{name}.together"), attended_members, width)?;
        Ok(Block { heads, together })
    }

    fn forward(&self, members: &Tensor, batch: &SetBatch) -> Result<Tensor> {
        let SetBatch { edges, partner_mask, .. } = batch;
        let attended_members =
            |head: &AttentionHead| head.forward(members, edges, partner_mask)?.attended_mean();
        let attended_members: Vec<Tensor> = self.heads.iter().map(attended_members).collect::<Result<_>>()?;
        let attended_members = if attended_members.is_empty() {
            members.clone()
        } else {
            leaky_relu(&Tensor::cat(&attended_members, 1)?, SLOPE)?
        };
        let together = self.together.forward(&attended_members, edges, partner_mask)?.attended_mean()?;
        leaky_relu(&together, SLOPE)
    }
}
