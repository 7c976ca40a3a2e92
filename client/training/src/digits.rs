//! `digits`: trains a perceptron with two hidden layers to recognise handwritten digits.
//!
//! It takes a few seconds on one core and is tested on unseen images. The order of the images is a function
//! of the seed and the epoch.

mod images;

use std::collections::BTreeMap;

use anyhow::Result;
use candle_core::{D, DType, Tensor};
use candle_nn::loss::cross_entropy;
use clap::{Args, value_parser};
use rand::seq::SliceRandom as _;

use self::images::{CLASSES, Images, PIXELS};
use crate::job_context::JobContext;
use crate::options::{RunOptions, positive_number};
use crate::parameters::Parameters;
use crate::process_group::Shard;
use crate::random::{RandomStream, generator};
use crate::training_loop::{self, TrainingConfig, TrainingEnd, TrainingTask};

/// Options of `digits`.
#[derive(Clone, Debug, Args)]
pub struct DigitsOptions {
    /// Number of epochs; may be increased when resuming
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub epochs: u32,

    /// Learning rate of the Adam optimizer
    #[arg(long, default_value_t = 0.001, allow_negative_numbers = true, value_parser = positive_number)]
    pub learning_rate: f64,

    /// Width of the two hidden layers
    #[arg(long, default_value_t = 256, value_parser = value_parser!(u32).range(1..=8192))]
    pub hidden: u32,

    /// Images per step, summed over all ranks
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u32).range(1..))]
    pub batch_size: u32,

    #[command(flatten)]
    pub run: RunOptions,
}

impl DigitsOptions {
    /// The options that must equal those of a checkpoint. The number of epochs may differ.
    fn by_flag(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("--batch-size".to_owned(), self.batch_size.to_string()),
            ("--hidden".to_owned(), self.hidden.to_string()),
            ("--learning-rate".to_owned(), self.learning_rate.to_string()),
            ("--seed".to_owned(), self.run.seed.to_string()),
        ])
    }
}

/// Trains and prints the accuracy on the test images.
pub(super) fn train(options: &DigitsOptions, job: &mut JobContext) -> Result<TrainingEnd> {
    let digits = Digits::new(options)?;
    let group = options.run.process_group(job)?;
    job.print_line(&format!(
        "{} images, {} parameters",
        digits.training.count(),
        digits.parameters.element_count()
    ));
    let plan = TrainingConfig {
        learning_rate: options.learning_rate,
        options: options.by_flag(),
        run: &options.run,
    };
    let ending = training_loop::train(&digits, plan, group, job)?;
    if ending == TrainingEnd::Finished {
        let (accuracy, images) = (100.0 * digits.accuracy()?, digits.test.count());
        job.print_line(&format!("accuracy {accuracy:.1}% on {images} images never seen in training"));
    }
    Ok(ending)
}

struct Digits {
    training: Images,
    test: Images,
    parameters: Parameters,
    network: Network,
    seed: u64,
    batch_size: usize,
    epochs: u64,
}

impl Digits {
    fn new(options: &DigitsOptions) -> Result<Self> {
        let seed = options.run.seed;
        let (training, test) = Images::split(seed)?;
        let mut parameters = Parameters::new(seed);
        let network = Network::new(&mut parameters, options.hidden as usize)?;
        let (batch_size, epochs) = (options.batch_size as usize, options.epochs.into());
        Ok(Self { training, test, parameters, network, seed, batch_size, epochs })
    }

    fn steps_per_epoch(&self) -> u64 {
        self.training.count().div_ceil(self.batch_size) as u64
    }

    /// The indices of the images of a step, counted from 0. Each epoch visits all images in a new order.
    fn batch(&self, step: u64) -> Vec<u32> {
        let (epoch, batch) = (step / self.steps_per_epoch(), (step % self.steps_per_epoch()) as usize);
        let mut numbers: Vec<u32> = (0..self.training.count() as u32).collect();
        numbers.shuffle(&mut generator(self.seed, RandomStream::Epoch(epoch)));
        let end = numbers.len().min((batch + 1) * self.batch_size);
        numbers[batch * self.batch_size..end].to_vec()
    }

    /// The fraction of test images that are recognised.
    fn accuracy(&self) -> Result<f32> {
        let read = self.network.forward(&self.test.pixels)?.argmax(D::Minus1)?;
        Ok(read.eq(&self.test.labels)?.to_dtype(DType::F32)?.mean_all()?.to_scalar()?)
    }
}

impl TrainingTask for Digits {
    const NAME: &str = "digits";

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn total_steps(&self) -> u64 {
        self.epochs * self.steps_per_epoch()
    }

    fn loss(&self, step: u64, shard: Shard) -> Result<Tensor> {
        let batch = self.batch(step);
        let (numbers, weight) = shard.part(&batch);
        let images = self.training.chosen(numbers)?;
        Ok((cross_entropy(&self.network.forward(&images.pixels)?, &images.labels)? * weight)?)
    }

    fn line_after(&self, steps: u64, loss: f32) -> Result<Option<String>> {
        if !steps.is_multiple_of(self.steps_per_epoch()) {
            return Ok(None);
        }
        let (epoch, epochs, total) = (steps / self.steps_per_epoch(), self.epochs, self.total_steps());
        let accuracy = 100.0 * self.accuracy()?;
        Ok(Some(format!(
            "epoch {epoch:>3}/{epochs}  step {steps:>5}/{total}  loss {loss:.4}  test accuracy {accuracy:.1}%"
        )))
    }
}

/// A perceptron with two hidden ReLU layers and a score for each digit.
struct Network {
    layers: Vec<(Tensor, Tensor)>,
}

impl Network {
    fn new(parameters: &mut Parameters, hidden: usize) -> Result<Self> {
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
    fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        let mut values = pixels.clone();
        for (number, (weight, bias)) in self.layers.iter().enumerate() {
            let input = if number == 0 { values } else { values.relu()? };
            values = input.matmul(weight)?.broadcast_add(bias)?;
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests;
