//! Layer normalisation of operations that have a gradient; the library's fused one silently has none.

use candle_core::{D, Result, Tensor};

use crate::networks::Parameters;

/// Added to the variance.
pub(super) const EPSILON: f64 = 1e-5;

/// Shifts and scales each row to mean 0 and variance 1, and then by learned numbers.
#[derive(Debug)]
pub(super) struct LayerNorm {
    /// `[width]`.
    gain: Tensor,
    /// `[width]`.
    bias: Tensor,
}

impl LayerNorm {
    pub(super) fn new(parameters: &mut Parameters, name: &str, width: usize) -> Result<LayerNorm> {
        Ok(LayerNorm {
            gain: parameters.constant(&format!("{name}.gain"), width, 1.0)?,
            bias: parameters.constant(&format!("{name}.bias"), width, 0.0)?,
        })
    }

    /// Normalises `[rows, width]`.
    pub(super) fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let centred = input.broadcast_sub(&input.mean_keepdim(D::Minus1)?)?;
        let deviation = (centred.sqr()?.mean_keepdim(D::Minus1)? + EPSILON)?.sqrt()?;
        centred.broadcast_div(&deviation)?.broadcast_mul(&self.gain)?.broadcast_add(&self.bias)
    }
}
