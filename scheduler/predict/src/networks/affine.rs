//! An affine map whose parameters are drawn or restored by name.

use candle_core::{Result, Tensor};

use super::parameters::Parameters;

/// An affine map.
#[derive(Debug)]
pub(crate) struct Affine {
    /// Transposed: `[from, to]`.
    pub(crate) weight: Tensor,
    pub(crate) bias: Option<Tensor>,
}

impl Affine {
    /// An affine map with Xavier initialisation for rectifiers and a zero bias.
    pub(crate) fn new(parameters: &mut Parameters, name: &str, from: usize, to: usize) -> Result<Affine> {
        let bias = parameters.constant(&format!("{name}.bias"), to, 0.0)?;
        Ok(Affine { bias: Some(bias), ..Affine::without_bias(parameters, name, from, to)? })
    }

    /// An affine map whose output is 0 before training.
    pub(crate) fn at_zero(parameters: &mut Parameters, name: &str, from: usize, to: usize) -> Result<Affine> {
        let weight = parameters.constant(&format!("{name}.weight"), (from, to), 0.0)?;
        let bias = parameters.constant(&format!("{name}.bias"), to, 0.0)?;
        Ok(Affine { weight, bias: Some(bias) })
    }

    pub(crate) fn without_bias(
        parameters: &mut Parameters,
        name: &str,
        from: usize,
        to: usize,
    ) -> Result<Affine> {
        let weight = parameters.normal(&format!("{name}.weight"), (from, to), xavier(from, to))?;
        Ok(Affine { weight, bias: None })
    }

    /// Maps `[rows, from]` to `[rows, to]`.
    pub(crate) fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let product = input.matmul(&self.weight)?;
        self.bias.as_ref().map_or(Ok(product.clone()), |bias| product.broadcast_add(bias))
    }
}

/// Xavier's standard deviation with the gain for rectifiers.
pub(crate) fn xavier(from: usize, to: usize) -> f64 {
    2.0_f64.sqrt() * (2.0 / (from + to) as f64).sqrt()
}
