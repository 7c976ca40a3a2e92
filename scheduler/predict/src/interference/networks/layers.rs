//! The layers of the networks.
//!
//! The fused layers of the library silently give no gradient; these consist of operations that do.

use candle_core::{DType, Result, Tensor};
use candle_nn::ops::{leaky_relu, sigmoid, softmax};
use rand_chacha::ChaCha8Rng;

use crate::networks::{Affine, Parameters, xavier};
use crate::random::RandomExt;

/// The slope of the leaky rectifier below 0.
pub(super) const SLOPE: f64 = 0.01;
/// Subtracted from the score of a masked member. An infinity would give NaN for a member with no partners.
const MASKED_SCORE: f64 = 1e9;

/// Whether a network is used or trained.
#[derive(Debug)]
pub(super) enum Mode<'a> {
    /// Nothing is random.
    Inference,
    /// Dropout and hidden identities are drawn.
    Training(&'a mut ChaCha8Rng),
}

impl Mode<'_> {
    /// The random generator during training.
    pub(super) fn random(&mut self) -> Option<&mut ChaCha8Rng> {
        match self {
            Mode::Inference => None,
            Mode::Training(random) => Some(random),
        }
    }

    /// Dropout: during training this fraction of the numbers is set to 0, and the others are scaled up.
    pub(super) fn dropout(&mut self, input: &Tensor, part: f64) -> Result<Tensor> {
        let Mode::Training(random) = self else { return Ok(input.clone()) };
        let mut kept = || if random.part() < part { 0.0 } else { 1.0 / (1.0 - part) };
        let mask: Vec<f64> = (0..input.elem_count()).map(|_| kept()).collect();
        input * Tensor::from_vec(mask, input.shape(), input.device())?.to_dtype(input.dtype())?
    }
}

/// Attention of each member to its partners, with a gain for each edge: a head of E-GGAT.
#[derive(Debug)]
pub(super) struct AttentionHead {
    weight: Affine,
    source: Tensor,
    destination: Tensor,
    edge_gain: Tensor,
    sharpness: Tensor,
}

/// The output of an attention head.
#[derive(Debug)]
pub(super) struct AttentionOutput {
    /// The projected members, `[sets, members, width]`.
    pub(super) projected: Tensor,
    /// The attention of the first member to the second, `[sets, members, members]`.
    pub(super) attention: Tensor,
}

impl AttentionHead {
    pub(super) fn new(
        parameters: &mut Parameters,
        name: &str,
        from: usize,
        width: usize,
    ) -> Result<AttentionHead> {
        let mut number = |what: &str, shape: (usize, usize)| {
            parameters.normal(&format!("{name}.{what}"), shape, xavier(shape.0, shape.1))
        };
        let source = number("source", (width, 1))?;
        let destination = number("destination", (width, 1))?;
        let edge_gain = number("edge_gain", (1, 1))?;
        let sharpness = number("sharpness", (1, 1))?;
        let weight = Affine::without_bias(parameters, &format!("{name}.seen"), from, width)?;
        Ok(AttentionHead { weight, source, destination, edge_gain, sharpness })
    }

    /// Takes members `[sets * members, from]`, and edges and the mask of partners, both
    /// `[sets, members, members]`.
    pub(super) fn forward(
        &self,
        members: &Tensor,
        edges: &Tensor,
        partner_mask: &Tensor,
    ) -> Result<AttentionOutput> {
        let (sets, count, _) = edges.dims3()?;
        let projected = leaky_relu(&self.weight.forward(members)?, SLOPE)?;
        let destination = projected.matmul(&self.destination)?.reshape((sets, count, 1))?;
        let source = projected.matmul(&self.source)?.reshape((sets, 1, count))?;
        let edges = edges.broadcast_mul(&self.edge_gain.reshape((1, 1, 1))?)?;
        let score = leaky_relu(&(destination.broadcast_add(&source)? * edges)?, SLOPE)?;
        let score = score.broadcast_mul(&self.sharpness.reshape((1, 1, 1))?)?;
        let score = (score + partner_mask.affine(MASKED_SCORE, -MASKED_SCORE)?)?;
        let attention = (softmax(&score, 2)? * partner_mask)?;
        let projected = projected.reshape((sets, count, ()))?;
        Ok(AttentionOutput { projected, attention })
    }
}

impl AttentionOutput {
    /// The attended mean of the partners of each member, `[sets * members, width]`.
    pub(super) fn attended_mean(&self) -> Result<Tensor> {
        self.attention.matmul(&self.projected)?.flatten(0, 1)
    }
}

/// The gate between the output and the input of a block, as in a gated recurrent unit.
#[derive(Debug)]
pub(super) struct Gate {
    reset: Affine,
    update: Affine,
    candidate: Affine,
}

impl Gate {
    pub(super) fn new(parameters: &mut Parameters, name: &str, width: usize) -> Result<Gate> {
        let mut part = |what: &str| Affine::new(parameters, &format!("{name}.{what}"), 2 * width, width);
        Ok(Gate { reset: part("reset")?, update: part("update")?, candidate: part("candidate")? })
    }

    /// Combines the output and the input of a block, both `[rows, width]`.
    pub(super) fn forward(&self, output: &Tensor, input: &Tensor) -> Result<Tensor> {
        let both = Tensor::cat(&[output, input], 1)?;
        let reset = sigmoid(&self.reset.forward(&both)?)?;
        let update = sigmoid(&self.update.forward(&both)?)?;
        let candidate = Tensor::cat(&[output, &(reset * input)?], 1)?;
        let candidate = self.candidate.forward(&candidate)?.tanh()?;
        (input + (update * (candidate - input)?)?)?.contiguous()
    }
}

/// The rows of a table with these indices; gradients flow into the rows.
pub(super) fn rows(table: &Tensor, places: &Tensor) -> Result<Tensor> {
    debug_assert_eq!(places.dtype(), DType::U32);
    table.index_select(places, 0)
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
