//! A step of training: AdamW with clipped gradients.

use candle_core::backprop::GradStore;
use candle_core::{DType, Result, Tensor, Var, bail};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};

/// The networks are small; single precision is enough.
pub(crate) const PRECISION: DType = DType::F32;

/// AdamW for these parameters, with this learning rate.
pub(crate) fn adam_w<'a>(
    parameters: impl Iterator<Item = (&'a str, &'a Var)>,
    lr: f64,
    weight_decay: f64,
) -> Result<AdamW> {
    let variables = parameters.map(|(_, variable)| variable.clone()).collect();
    AdamW::new(variables, ParamsAdamW { lr, weight_decay, ..ParamsAdamW::default() })
}

/// Clips the gradient of these parameters to this norm. A parameter without a gradient is an error: some
/// operations of the library silently give none.
pub(crate) fn clip<'a>(
    gradients: &mut GradStore,
    parameters: impl Iterator<Item = (&'a str, &'a Var)> + Clone,
    max_gradient_norm: f64,
) -> Result<()> {
    let mut square = 0.0;
    for (name, variable) in parameters.clone() {
        let Some(gradient) = gradients.get(variable) else { bail!("parameter {name} got no gradient") };
        square += number(&gradient.detach().sqr()?.sum_all()?)?;
    }
    let norm = square.sqrt();
    if norm > max_gradient_norm {
        for (_, variable) in parameters {
            if let Some(gradient) = gradients.remove(variable) {
                gradients.insert(variable, (gradient.detach() * (max_gradient_norm / norm))?);
            }
        }
    }
    Ok(())
}

/// The value of a tensor of one number.
pub(crate) fn number(tensor: &Tensor) -> Result<f64> {
    tensor.to_dtype(DType::F64)?.to_scalar()
}
