//! The images, the network and its weights in one: what the training program trains, and what programs of
//! others train in their own way.

use anyhow::{Result, ensure};
use candle_core::{D, DType, Device, Tensor};
use candle_nn::loss::cross_entropy;
use rand::seq::SliceRandom as _;

use super::distortion::Distortion;
use super::images::Images;
use super::network::Network;
use crate::gradients::Gradients;
use crate::parameters::Parameters;
use crate::random::{RandomStream, generator};

/// A small network that recognizes handwritten digits, with the images to train and to test it.
///
/// Its weights, and their gradients, are a list of numbers in an order that is always the same. What it
/// computes follows from the seed and the weights alone.
pub struct DigitsModel {
    training: Images,
    test: Images,
    parameters: Parameters,
    network: Network,
    seed: u64,
}

impl DigitsModel {
    /// A network with hidden layers of this width on this device, with random weights.
    ///
    /// # Errors
    /// If the device cannot hold it.
    pub fn new(seed: u64, hidden: u32, device: &Device) -> Result<Self> {
        let (training, test) = Images::split(seed, device)?;
        let mut parameters = Parameters::new(seed).on(device);
        let network = Network::new(&mut parameters, hidden as usize)?;
        Ok(Self { training, test, parameters, network, seed })
    }

    /// The number of images to train it with.
    #[must_use]
    pub fn image_count(&self) -> usize {
        self.training.count()
    }

    /// The indices of the images of a step, counted from 0. Each epoch visits all images in a new order.
    #[must_use]
    pub fn batch(&self, step: u64, size: usize) -> Vec<u32> {
        let steps = self.steps_per_epoch(size);
        let (epoch, batch) = (step / steps, (step % steps) as usize);
        let mut numbers: Vec<u32> = (0..self.image_count() as u32).collect();
        numbers.shuffle(&mut generator(self.seed, RandomStream::Epoch(epoch)));
        let end = numbers.len().min((batch + 1) * size);
        numbers[batch * size..end].to_vec()
    }

    /// The mean loss of the images with these indices, and its gradient.
    ///
    /// # Errors
    /// If there is no such image.
    pub fn gradient(&self, numbers: &[u32]) -> Result<(f32, Vec<f32>)> {
        let gradients = Gradients::of_loss(&self.loss(numbers)?, &self.parameters)?;
        let mut values = Vec::with_capacity(self.parameters.element_count());
        for (name, _) in self.parameters.iter() {
            values.extend(gradients.of(name)?.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok((gradients.loss, values))
    }

    /// One step of gradient descent on these images; returns their mean loss before it.
    ///
    /// # Errors
    /// If there is no such image.
    pub fn descend(&self, numbers: &[u32], learning_rate: f32) -> Result<f32> {
        let (loss, gradient) = self.gradient(numbers)?;
        let moved =
            self.weights()?.into_iter().zip(gradient).map(|(weight, slope)| weight - learning_rate * slope);
        self.set_weights(&moved.collect::<Vec<f32>>())?;
        Ok(loss)
    }

    /// All weights.
    ///
    /// # Errors
    /// If the device fails.
    pub fn weights(&self) -> Result<Vec<f32>> {
        let mut values = Vec::with_capacity(self.parameters.element_count());
        for (_, variable) in self.parameters.iter() {
            values.extend(variable.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(values)
    }

    /// Replaces all weights.
    ///
    /// # Errors
    /// If they are those of a network of another size.
    pub fn set_weights(&self, weights: &[f32]) -> Result<()> {
        let count = self.parameters.element_count();
        ensure!(weights.len() == count, "{} weights for a network that has {count}", weights.len());
        let mut rest = weights;
        for (_, variable) in self.parameters.iter() {
            let (own, others) = rest.split_at(variable.elem_count());
            variable.set(&Tensor::from_slice(own, variable.shape(), variable.device())?)?;
            rest = others;
        }
        Ok(())
    }

    /// The mean loss of the images that it is not trained with.
    ///
    /// # Errors
    /// If the device fails.
    pub fn test_loss(&self) -> Result<f32> {
        Ok(self.loss_of(&self.test)?.to_scalar()?)
    }

    /// The fraction of the images that it is not trained with which it recognizes.
    ///
    /// # Errors
    /// If the device fails.
    pub fn accuracy(&self) -> Result<f32> {
        let read = self.network.forward(&self.test.pixels)?.argmax(D::Minus1)?;
        Ok(read.eq(&self.test.labels)?.to_dtype(DType::F32)?.mean_all()?.to_scalar()?)
    }

    pub(super) fn test_image_count(&self) -> usize {
        self.test.count()
    }

    pub(super) fn steps_per_epoch(&self, batch_size: usize) -> u64 {
        self.image_count().div_ceil(batch_size) as u64
    }

    pub(super) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The mean loss of the images with these indices: a scalar that depends on the parameters.
    pub(super) fn loss(&self, numbers: &[u32]) -> Result<Tensor> {
        self.loss_of(&self.training.chosen(numbers)?)
    }

    /// The same with images that are distorted for a step.
    pub(super) fn distorted_loss(
        &self,
        distortion: Distortion,
        step: u64,
        numbers: &[u32],
    ) -> Result<Tensor> {
        self.loss_of(&self.training.chosen(numbers)?.distorted(distortion, step, numbers)?)
    }

    fn loss_of(&self, images: &Images) -> Result<Tensor> {
        Ok(cross_entropy(&self.network.forward(&images.pixels)?, &images.labels)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> DigitsModel {
        DigitsModel::new(1, 16, &Device::Cpu).unwrap()
    }

    #[test]
    fn weights_that_are_set_are_the_model() {
        let (trained, other) = (model(), model());
        let before = trained.test_loss().unwrap();
        for step in 0..20 {
            trained.descend(&trained.batch(step, 64), 0.1).unwrap();
        }
        let loss = trained.test_loss().unwrap();
        assert!(loss < before - 0.1, "{loss} after {before}");
        other.set_weights(&trained.weights().unwrap()).unwrap();
        assert_eq!(other.test_loss().unwrap(), loss);
    }

    #[test]
    fn gradients_are_in_the_order_of_the_weights() {
        let model = model();
        let (batch, weights) = (model.batch(0, 64), model.weights().unwrap());
        let (loss, gradient) = model.gradient(&batch).unwrap();
        let steepest = (0..gradient.len()).max_by(|a, b| gradient[*a].abs().total_cmp(&gradient[*b].abs()));
        let steepest = steepest.unwrap();
        let mut moved = weights;
        moved[steepest] += 1e-2;
        model.set_weights(&moved).unwrap();
        let slope = (model.gradient(&batch).unwrap().0 - loss) / 1e-2;
        assert!((slope - gradient[steepest]).abs() < 0.1 * slope.abs(), "{slope} {}", gradient[steepest]);
    }

    #[test]
    fn weights_of_another_size_are_refused() {
        let text = model().set_weights(&[0.0; 3]).unwrap_err().to_string();
        assert!(text.starts_with("3 weights for a network that has "), "{text}");
    }
}
