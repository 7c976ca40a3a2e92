//! The measured memory and utilization of the rows of a batch, and the loss of their predictions.

use candle_core::{DType, Device, Result, Tensor};

use super::huber::huber;
use super::usage_outputs::{ExpectedSet, UsageOutputs};

/// The measured values of the outputs. Rows without a measurement have no weight.
#[derive(Debug)]
pub(super) struct UsageTargets {
    /// The logarithm of the measured value relative to the expected one, `[rows, outputs]`.
    ln_ratios: Tensor,
    /// The weights of the rows of each output; their sum is 1, or 0 without any measurement,
    /// `[rows, outputs]`.
    weights: Tensor,
}

/// The error of a logarithm from which Huber's loss is linear.
const LINEAR_FROM: f64 = 0.05;

impl UsageTargets {
    /// The targets of sets that ran, with `count` rows each; `None` for a network without such outputs.
    pub(super) fn of(
        outputs: &UsageOutputs,
        sets: &[ExpectedSet<'_>],
        count: usize,
        precision: DType,
    ) -> Result<Option<UsageTargets>> {
        if outputs.is_empty() {
            return Ok(None);
        }
        let (rows, width) = (sets.len() * count, outputs.count());
        let (mut ln_ratios, mut weights) = (vec![0.0; rows * width], vec![0.0; rows * width]);
        for (at, set) in sets.iter().enumerate() {
            for (place, measured) in outputs.measured(*set).into_iter().enumerate() {
                let row = (at * count + place) * width;
                for (output, ln_ratio) in measured.into_iter().enumerate() {
                    ln_ratios[row + output] = ln_ratio.unwrap_or(0.0);
                    weights[row + output] = if ln_ratio.is_some() { 1.0 } else { 0.0 };
                }
            }
        }
        let shape = (rows, width);
        let tensor = |values| Tensor::from_vec(values, shape, &Device::Cpu)?.to_dtype(precision);
        let weights: Tensor = tensor(weights)?;
        let weights = weights.broadcast_div(&weights.sum_keepdim(0)?.maximum(1.0)?)?;
        Ok(Some(UsageTargets { ln_ratios: tensor(ln_ratios)?, weights }))
    }

    /// Huber's loss: the sum over the outputs of their mean over the measured rows.
    pub(super) fn loss(&self, predicted: &Tensor) -> Result<Tensor> {
        let error = huber(&(predicted - &self.ln_ratios)?, LINEAR_FROM)?;
        (error * &self.weights)?.sum_all()
    }
}
