//! The Adam optimizer (Kingma and Ba 2015, algorithm 1) with moments that can be saved.
//!
//! Candle's AdamW does not expose its moments, so a training that is resumed with it loses them and ends with
//! other weights. Here they are tensors by parameter name, and the caller counts the steps.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use candle_core::Tensor;

use crate::gradients::Gradients;
use crate::parameters::Parameters;

const FIRST_DECAY: f64 = 0.9;
const SECOND_DECAY: f64 = 0.999;
const EPSILON: f64 = 1e-8;

const FIRST_PREFIX: &str = "adam.first.";
const SECOND_PREFIX: &str = "adam.second.";

/// The running means of the gradients and of their squares, by parameter name.
pub(crate) struct Adam {
    learning_rate: f64,
    first: BTreeMap<String, Tensor>,
    second: BTreeMap<String, Tensor>,
}

impl Adam {
    pub(crate) fn new(parameters: &Parameters, learning_rate: f64) -> Result<Self> {
        let zeros = || -> Result<BTreeMap<_, _>> {
            parameters
                .iter()
                .map(|(name, variable)| Ok((name.to_owned(), variable.zeros_like()?.detach())))
                .collect()
        };
        Ok(Self { learning_rate, first: zeros()?, second: zeros()? })
    }

    /// Moves every parameter against its gradient; `step` counts from 1.
    pub(crate) fn update(&mut self, parameters: &Parameters, gradients: &Gradients, step: u64) -> Result<()> {
        let steps = step as f64;
        let first_scale = 1.0 / (1.0 - FIRST_DECAY.powf(steps));
        let second_scale = 1.0 / (1.0 - SECOND_DECAY.powf(steps));
        for (name, variable) in parameters.iter() {
            let gradient = gradients.of(name)?;
            let first = decayed(&mut self.first, name, FIRST_DECAY, gradient)?;
            let second = decayed(&mut self.second, name, SECOND_DECAY, &gradient.sqr()?)?;
            let direction = ((first * first_scale)? / ((second * second_scale)?.sqrt()? + EPSILON)?)?;
            variable.set(&(variable.as_detached_tensor() - (direction * self.learning_rate)?)?)?;
        }
        Ok(())
    }

    /// The moments with their names in a checkpoint.
    pub(crate) fn tensors(&self) -> impl Iterator<Item = (String, Tensor)> {
        let first = self.first.iter().map(|(name, moment)| (format!("{FIRST_PREFIX}{name}"), moment.clone()));
        let second =
            self.second.iter().map(|(name, moment)| (format!("{SECOND_PREFIX}{name}"), moment.clone()));
        first.chain(second)
    }

    /// Restores the moments from a checkpoint. On an error, nothing has changed.
    pub(crate) fn restore(
        &mut self,
        parameters: &Parameters,
        saved: &BTreeMap<String, Tensor>,
    ) -> Result<()> {
        let first = parameters.matching(saved, FIRST_PREFIX)?;
        let second = parameters.matching(saved, SECOND_PREFIX)?;
        (self.first, self.second) = (first, second);
        Ok(())
    }
}

/// Replaces a running mean by `decay · mean + (1 − decay) · value` and returns it.
fn decayed<'a>(
    means: &'a mut BTreeMap<String, Tensor>,
    name: &str,
    decay: f64,
    value: &Tensor,
) -> Result<&'a Tensor> {
    let mean = means.get_mut(name).with_context(|| format!("no moment for parameter {name}"))?;
    *mean = ((&*mean * decay)? + (value * (1.0 - decay))?)?;
    Ok(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without history, the first step is the learning rate times the negative sign of the gradient.
    #[test]
    fn the_first_step_has_the_length_of_the_learning_rate() {
        let mut parameters = Parameters::new(1);
        let weights = parameters.zeros("weights", 2).unwrap();
        let slopes = Tensor::new(&[3.0f32, -0.5], weights.device()).unwrap();
        let loss = (&weights * &slopes).unwrap().sum_all().unwrap();
        let gradients = Gradients::of_loss(&loss, &parameters).unwrap();
        Adam::new(&parameters, 0.1).unwrap().update(&parameters, &gradients, 1).unwrap();
        let moved: Vec<f32> = weights.to_vec1().unwrap();
        assert!((moved[0] + 0.1).abs() < 1e-6 && (moved[1] - 0.1).abs() < 1e-6, "{moved:?}");
    }

    /// A moment that is linked to its gradient in the graph would keep the tensors of every step alive.
    #[test]
    fn moments_are_detached_from_the_graph() {
        let mut parameters = Parameters::new(1);
        let (left, right) =
            (parameters.uniform("left", (2, 3), 1.0), parameters.uniform("right", (3, 2), 1.0));
        let product = left.unwrap().matmul(&right.unwrap()).unwrap();
        let gradients = Gradients::of_loss(&product.sum_all().unwrap(), &parameters).unwrap();
        let mut adam = Adam::new(&parameters, 0.1).unwrap();
        adam.update(&parameters, &gradients, 1).unwrap();
        assert!(adam.tensors().all(|(_, moment)| !moment.track_op()));
    }
}
