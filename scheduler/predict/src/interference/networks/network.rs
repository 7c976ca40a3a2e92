//! What every network gives: an answer for each member of a batch, and a loss to learn by.

use candle_core::{Result, Tensor};

use super::batch::{Edges, SetBatch, Targets};
use super::feature_encoder::FeatureEncoder;
use super::layers::Mode;
use super::parameters::Parameters;
use super::scales::Scaling;

/// A network.
pub(super) trait Network: std::fmt::Debug + Send + Sync + Sized + 'static {
    /// As command lines call it.
    const NAME: &'static str;
    /// How it is trained.
    const TRAINING_OPTIONS: TrainingOptions;
    /// How its numbers are scaled.
    const SCALING: Scaling;
    /// What its answer starts from.
    const BASE_MODEL: BaseModel;
    /// What edges it is shown.
    const EDGES: Edges;

    /// Its layers.
    ///
    /// # Errors
    /// Where parameters are stored and one of them is lacking or of another shape.
    fn new(parameters: &mut Parameters, look: &FeatureEncoder, width: usize) -> Result<Self>;

    /// The logarithm of the slowdown of every row, `[rows, 1]`; it may lie below 0.
    fn forward(&self, batch: &SetBatch, mode: &mut Mode<'_>) -> Result<Tensor>;

    /// How much every row contends for what, from 0 to 1, `[rows, metrics]`; none of networks that do not
    /// look at it.
    fn contention(&self, _: &SetBatch) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// What is to become small.
    fn loss(&self, batch: &SetBatch, targets: &Targets, mode: &mut Mode<'_>) -> Result<Tensor> {
        relative_error(&self.forward(batch, mode)?, targets)
    }
}

/// What the answer of a network starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BaseModel {
    /// The network answers on its own.
    Nothing,
    /// The network says by how much the answer of the Gaussian process is wrong.
    Process,
}

/// How a kind of network is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TrainingOptions {
    /// Networks that answer together.
    pub(super) ensemble: usize,
    /// Width of its layers.
    pub(super) width: usize,
    /// At most.
    pub(super) epochs: usize,
    /// Epochs without a better loss on what is held back, after which it ends.
    pub(super) patience: usize,
    /// Sets in a step.
    pub(super) batch: usize,
    /// Of the first step.
    pub(super) learning_rate: f64,
    /// The rate falls to this part of it, along half a cosine.
    pub(super) final_rate_part: f64,
    /// Of AdamW.
    pub(super) weight_decay: f64,
    /// Norm of the gradient at most.
    pub(super) max_gradient_norm: f64,
}

/// The logarithm of a slowdown errs linearly from here on, which is what Huber's loss is for.
const LINEAR_FROM: f64 = 0.05;

/// Huber's loss on the logarithm of the slowdown. That a job is not slowed at all says no more than that its
/// logarithm lies at or below 0.
pub(super) fn relative_error(ln_slowdown: &Tensor, targets: &Targets) -> Result<Tensor> {
    let censored = targets.ln_slowdown.le(0.0)?;
    let read = censored.where_cond(&ln_slowdown.relu()?, ln_slowdown)?;
    let error = huber(&(read - &targets.ln_slowdown)?, LINEAR_FROM)?;
    (error * &targets.weights)?.sum_all()
}

/// Huber's loss of each error, divided by the place where it becomes linear.
pub(super) fn huber(error: &Tensor, linear_from: f64) -> Result<Tensor> {
    let size = error.abs()?;
    let quadratic = size.le(linear_from)?;
    let curved = (error.sqr()? * (0.5 / linear_from))?;
    let straight = (&size - 0.5 * linear_from)?;
    quadratic.where_cond(&curved, &straight)
}
