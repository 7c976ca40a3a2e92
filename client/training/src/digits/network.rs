//! The network that recognizes digits.

use anyhow::Result;
use candle_core::Tensor;

use super::images::{CLASSES, PIXELS};
use crate::parameters::Parameters;

/// A perceptron with two hidden ReLU layers and a score for each digit.
pub(super) struct Network {
    layers: Vec<(Tensor, Tensor)>,
}

impl Network {
    pub(super) fn new(parameters: &mut Parameters, hidden: usize) -> Result<Self> {
        let shapes = [("hidden1", PIXELS, hidden), ("hidden2", hidden, hidden), ("output", hidden, CLASSES)];
        let layers = shapes.map(|(name, inputs, outputs)| {
            // He et al. 2015, equation 10, for a uniform distribution.
            let bound = (6.0 / inputs as f32).sqrt();
            let weight = parameters.uniform(&format!("{name}.weight"), (inputs, outputs), bound)?;
            Ok((weight, parameters.zeros(&format!("{name}.bias"), outputs)?))
        });
        Ok(Self { layers: layers.into_iter().collect::<Result<_>>()? })
    }

    /// Computes scores `[images, CLASSES]` from pixels `[images, PIXELS]`.
    pub(super) fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        let mut values = pixels.clone();
        for (number, (weight, bias)) in self.layers.iter().enumerate() {
            let input = if number == 0 { values } else { values.relu()? };
            values = input.matmul(weight)?.broadcast_add(bias)?;
        }
        Ok(values)
    }
}
