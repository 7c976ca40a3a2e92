//! The heads that predict what members use: a hidden layer on what the attention blocks know of a member.

use candle_core::{Result, Tensor};

use super::usage_outputs::UsageOutputs;
use crate::networks::{Affine, Parameters};

/// A head for each output.
#[derive(Debug)]
pub(super) struct UsageHeads {
    hidden: Affine,
    answer: Affine,
    /// A linear part that bypasses the hidden layer.
    bypass: Affine,
}

impl UsageHeads {
    /// Builds the heads for members of this width; `None` without outputs. They must be the last layers that
    /// draw parameters, so that the others are the same without them.
    pub(super) fn new(
        parameters: &mut Parameters,
        outputs: &UsageOutputs,
        width: usize,
    ) -> Result<Option<UsageHeads>> {
        if outputs.is_empty() {
            return Ok(None);
        }
        Ok(Some(UsageHeads {
            hidden: Affine::new(parameters, "usage.hidden", width, width)?,
            answer: Affine::at_zero(parameters, "usage.answer", width, outputs.count())?,
            bypass: Affine::at_zero(parameters, "usage.bypass", width, outputs.count())?,
        }))
    }

    /// Maps members `[rows, width]` to outputs `[rows, outputs]`.
    pub(super) fn forward(&self, members: &Tensor) -> Result<Tensor> {
        let deep = self.hidden.forward(members)?.gelu()?;
        self.answer.forward(&deep)? + self.bypass.forward(members)?
    }
}
