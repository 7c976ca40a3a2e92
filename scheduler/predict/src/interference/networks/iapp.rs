//! IAPP: dense layers that predict the slowdown of a job from its numbers and those of its partners.
//!
//! IASP, which is trained with it, completes metrics that were not measured.

use candle_core::{D, Result, Tensor};

use super::batch::{Edges, SetBatch, Targets};
use super::feature_encoder::FeatureEncoder;
use super::iasp::Iasp;
use super::layers::Mode;
use super::network::{BaseModel, Network, NetworkOutput, TrainingOptions, relative_error};
use super::scales::Scaling;
use crate::networks::{Affine, Parameters};

/// The network.
#[derive(Debug)]
pub(super) struct Iapp {
    /// `None` if no job was ever measured alone.
    iasp: Option<Iasp>,
    layers: Vec<Affine>,
    answer: Affine,
}

/// The layers' widths: the first one divided by these.
const NARROWING: [usize; 3] = [1, 2, 4];
/// The dropout rate.
const DROPOUT: f64 = 0.1;
/// Padding is lower by this than any number of a member when the maximum is computed.
const LOWEST: f64 = 1e4;

impl Network for Iapp {
    const NAME: &'static str = "iapp";
    const TRAINING_OPTIONS: TrainingOptions = TrainingOptions {
        ensemble: 5,
        width: 128,
        epochs: 120,
        patience: 40,
        batch: 64,
        learning_rate: 2e-3,
        final_rate_part: 0.02,
        weight_decay: 0.01,
        max_gradient_norm: 1.0,
    };
    const SCALING: Scaling = Scaling::Standard;
    const BASE_MODEL: BaseModel = BaseModel::Nothing;
    const EDGES: Edges = Edges::OfLargerSets;

    fn new(parameters: &mut Parameters, encoder: &FeatureEncoder, width: usize) -> Result<Iapp> {
        let metrics = encoder.metrics();
        let iasp = (metrics > 0).then(|| Iasp::new(parameters, metrics, encoder.width())).transpose()?;
        let mut from = 3 * (encoder.width() + metrics);
        let mut layers = Vec::new();
        for (at, narrower) in NARROWING.into_iter().enumerate() {
            let to = width / narrower;
            layers.push(Affine::new(parameters, &format!("layer{}", at + 1), from, to)?);
            from = to;
        }
        Ok(Iapp { iasp, layers, answer: Affine::new(parameters, "answer", from, 1)? })
    }

    fn forward(&self, batch: &SetBatch, mode: &mut Mode<'_>) -> Result<NetworkOutput> {
        let own = match self.contention(batch)? {
            Some(metrics) => Tensor::cat(&[&batch.numbers, &metrics], 1)?,
            None => batch.numbers.clone(),
        };
        let by_set = own.reshape((batch.sets, batch.count, ()))?;
        let mut inputs = Tensor::cat(&[own, sum(batch, &by_set)?, largest(batch, &by_set)?], 1)?;
        for layer in &self.layers {
            inputs = mode.dropout(&layer.forward(&inputs)?.relu()?, DROPOUT)?;
        }
        // Softplus: co-location makes no job faster.
        let answer = self.answer.forward(&inputs)?;
        let ln_slowdown = (answer.relu()? + (answer.abs()?.neg()?.exp()? + 1.0)?.log()?)?;
        Ok(ln_slowdown.into())
    }

    /// Adds the loss of IASP during training.
    fn loss(&self, batch: &SetBatch, targets: &Targets, mode: &mut Mode<'_>) -> Result<Tensor> {
        let loss = relative_error(&self.forward(batch, mode)?.ln_slowdown, targets)?;
        match (&self.iasp, mode.random()) {
            (Some(iasp), Some(random)) => loss + iasp.loss(&batch.metrics, &batch.numbers, random)?,
            (Some(_) | None, _) => Ok(loss),
        }
    }

    fn contention(&self, batch: &SetBatch) -> Result<Option<Tensor>> {
        let completed = |iasp: &Iasp| iasp.complete(&batch.metrics, &batch.numbers);
        self.iasp.as_ref().map(completed).transpose()
    }
}

/// Sums of the partners' numbers, `[rows, numbers]`.
fn sum(batch: &SetBatch, by_set: &Tensor) -> Result<Tensor> {
    batch.partner_mask.matmul(by_set)?.flatten(0, 1)
}

/// Maxima of the partners' numbers, `[rows, numbers]`.
fn largest(batch: &SetBatch, by_set: &Tensor) -> Result<Tensor> {
    let mask = batch.partner_mask.affine(LOWEST, -LOWEST)?.unsqueeze(D::Minus1)?;
    let masked = by_set.unsqueeze(1)?.broadcast_add(&mask)?;
    let there = batch.present.reshape((batch.sets, batch.count, 1))?;
    masked.max(2)?.broadcast_mul(&there)?.flatten(0, 1)
}
