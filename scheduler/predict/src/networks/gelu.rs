//! GELU, of operations with exact gradients.
//!
//! The gradient of the library's own operation has constants of six digits, and computes powers.

use candle_core::{Result, Tensor};

/// sqrt(2 / pi).
const FACTOR: f64 = 0.797_884_560_802_865_4;
/// The coefficient of the cube in the approximation by the hyperbolic tangent.
const CUBE: f64 = 0.044_715;

/// `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`.
pub(crate) fn gelu(input: &Tensor) -> Result<Tensor> {
    let inner = (input * input.sqr()?.affine(CUBE * FACTOR, FACTOR)?)?;
    input * inner.tanh()?.affine(0.5, 0.5)?
}
