//! What every network provides: outputs for each member of a batch, and a loss.

use candle_core::{Result, Tensor};

use super::batch::{Edges, SetBatch, Targets};
use super::feature_encoder::FeatureEncoder;
use super::huber::huber;
use super::layers::Mode;
use super::row_network::RowNetwork;
use super::scales::Scaling;
use crate::networks::Parameters;

/// A network.
pub(super) trait Network: std::fmt::Debug + Send + Sync + Sized + 'static {
    /// The name on command lines.
    const NAME: &'static str;
    /// The settings of its training.
    const TRAINING_OPTIONS: TrainingOptions;
    /// The scaling of its inputs.
    const SCALING: Scaling;
    /// The base of its prediction.
    const BASE_MODEL: BaseModel;
    /// The edges that it gets.
    const EDGES: Edges;

    /// Builds the layers.
    ///
    /// # Errors
    ///
    /// If parameters are restored and one is missing or has another shape.
    fn new(parameters: &mut Parameters, encoder: &FeatureEncoder, width: usize) -> Result<Self>;

    /// The outputs for every row.
    fn forward(&self, batch: &SetBatch, mode: &mut Mode<'_>) -> Result<NetworkOutput>;

    /// The contention metrics of every row, from 0 to 1, `[rows, metrics]`; `None` for networks that do not
    /// use them.
    fn contention(&self, _: &SetBatch) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// The same network in plain Rust, for predictions; `None` where only this one exists.
    ///
    /// # Errors
    ///
    /// If a parameter is missing.
    fn rows(_: &Parameters, _: &FeatureEncoder, _: usize) -> Result<Option<Box<dyn RowNetwork>>> {
        Ok(None)
    }

    /// The loss.
    fn loss(&self, batch: &SetBatch, targets: &Targets, mode: &mut Mode<'_>) -> Result<Tensor> {
        let NetworkOutput { ln_slowdown, usage } = self.forward(batch, mode)?;
        let loss = relative_error(&ln_slowdown, targets)?;
        match (&targets.usage, &usage) {
            (Some(targets), Some(usage)) => loss + targets.loss(usage)?,
            (Some(_) | None, _) => Ok(loss),
        }
    }
}

/// The outputs of a network.
#[derive(Debug)]
pub(super) struct NetworkOutput {
    /// The logarithm of the slowdown of every row, `[rows, 1]`; it may be below 0.
    pub(super) ln_slowdown: Tensor,
    /// What the members use, `[rows, outputs]`, for networks that predict it.
    pub(super) usage: Option<Tensor>,
}

impl From<Tensor> for NetworkOutput {
    fn from(ln_slowdown: Tensor) -> NetworkOutput {
        NetworkOutput { ln_slowdown, usage: None }
    }
}

/// The base of a network's prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BaseModel {
    /// The network predicts the slowdown itself.
    Nothing,
    /// The network predicts the error of the Gaussian process.
    Process,
}

/// The settings of a training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TrainingOptions {
    /// The number of networks in an ensemble.
    pub(super) ensemble: usize,
    /// The width of the layers.
    pub(super) width: usize,
    /// The largest number of epochs.
    pub(super) epochs: usize,
    /// Training stops after this many epochs without a lower loss on held-back data.
    pub(super) patience: usize,
    /// The number of sets in a step.
    pub(super) batch: usize,
    /// The learning rate of the first step.
    pub(super) learning_rate: f64,
    /// The final learning rate as a fraction of the first; it falls along half a cosine.
    pub(super) final_rate_part: f64,
    /// The weight decay of AdamW.
    pub(super) weight_decay: f64,
    /// The largest norm of the gradient.
    pub(super) max_gradient_norm: f64,
}

/// The error of the logarithm of the slowdown from which Huber's loss is linear.
const LINEAR_FROM: f64 = 0.05;

/// Huber's loss of the logarithm of the slowdown. A measured slowdown of 1 is censored: it only says that the
/// logarithm is at most 0.
pub(super) fn relative_error(ln_slowdown: &Tensor, targets: &Targets) -> Result<Tensor> {
    let censored = targets.ln_slowdown.le(0.0)?;
    let read = censored.where_cond(&ln_slowdown.relu()?, ln_slowdown)?;
    let error = huber(&(read - &targets.ln_slowdown)?, LINEAR_FROM)?;
    (error * &targets.weights)?.sum_all()
}
