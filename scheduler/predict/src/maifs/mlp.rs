//! A network of two layers with GELU between them.

use candle_core::{Result, Tensor};

use crate::networks::{Affine, Parameters, gelu};

/// `second(gelu(first(x)))`.
#[derive(Debug)]
pub(super) struct Mlp {
    first: Affine,
    second: Affine,
}

impl Mlp {
    pub(super) fn new(parameters: &mut Parameters, name: &str, widths: [usize; 3]) -> Result<Mlp> {
        let [from, hidden, to] = widths;
        Ok(Mlp {
            first: Affine::new(parameters, &format!("{name}.first"), from, hidden)?,
            second: Affine::new(parameters, &format!("{name}.second"), hidden, to)?,
        })
    }

    /// Maps `[rows, from]` to `[rows, to]`.
    pub(super) fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.second.forward(&gelu(&self.first.forward(input)?)?)
    }
}
