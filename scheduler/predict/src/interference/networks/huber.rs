//! Huber's loss: quadratic for small errors, linear for large ones.

use candle_core::{Result, Tensor};

/// Huber's loss of each error, divided by the error from which it is linear.
pub(super) fn huber(error: &Tensor, linear_from: f64) -> Result<Tensor> {
    let size = error.abs()?;
    let quadratic = size.le(linear_from)?;
    let curved = (error.sqr()? * (0.5 / linear_from))?;
    let straight = (&size - 0.5 * linear_from)?;
    quadratic.where_cond(&curved, &straight)
}
