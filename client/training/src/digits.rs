//! `digits`: trains a perceptron with two hidden layers to recognise handwritten digits.
//!
//! It takes a few seconds on one core and is tested on unseen images. The order of the images is a function
//! of the seed and the epoch.

mod distortion;
mod images;
mod model;
mod network;

use std::collections::BTreeMap;

use anyhow::Result;
use candle_core::{Device, Tensor};
use clap::{Args, value_parser};

use crate::job_context::JobContext;
use crate::options::{RunOptions, positive_number};
use crate::parameters::Parameters;
use crate::process_group::Shard;
use crate::training_loop::{self, TrainingConfig, TrainingEnd, TrainingTask};

pub use self::model::DigitsModel;

use self::distortion::Distortion;

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

    /// Turn, scale and move each image at random in every step, and draw each of its pixels as the mean of
    /// COUNT x COUNT points; from about 16 on, a step takes most of its time for that
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u16).range(1..=1024))]
    pub distort: Option<u16>,

    /// Threads that distort images
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = value_parser!(u16).range(1..=1024))]
    pub loader_threads: u16,

    #[command(flatten)]
    pub run: RunOptions,
}

impl DigitsOptions {
    /// The options that must equal those of a checkpoint. The number of epochs may differ.
    fn by_flag(&self) -> BTreeMap<String, String> {
        let mut options = BTreeMap::from([
            ("--batch-size".to_owned(), self.batch_size.to_string()),
            ("--hidden".to_owned(), self.hidden.to_string()),
            ("--learning-rate".to_owned(), self.learning_rate.to_string()),
            ("--seed".to_owned(), self.run.seed.to_string()),
        ]);
        options.extend(self.distort.map(|points| ("--distort".to_owned(), points.to_string())));
        options
    }

    fn distortion(&self) -> Option<Distortion> {
        let (seed, threads) = (self.run.seed, self.loader_threads);
        self.distort.map(|points| Distortion { seed, points, threads })
    }
}

/// Trains and prints the accuracy on the test images.
pub(super) fn train(options: &DigitsOptions, job: &mut JobContext) -> Result<TrainingEnd> {
    let digits = Digits::new(options)?;
    let group = options.run.process_group(job)?;
    job.print_line(&format!(
        "{} images, {} parameters",
        digits.model.image_count(),
        digits.model.parameters().element_count()
    ));
    let plan = TrainingConfig {
        learning_rate: options.learning_rate,
        options: options.by_flag(),
        run: &options.run,
    };
    let ending = training_loop::train(&digits, plan, group, job)?;
    if ending == TrainingEnd::Finished {
        let (accuracy, images) = (100.0 * digits.model.accuracy()?, digits.model.test_image_count());
        job.print_line(&format!("accuracy {accuracy:.1}% on {images} images never seen in training"));
    }
    Ok(ending)
}

/// The model as a program trains it.
struct Digits {
    model: DigitsModel,
    distortion: Option<Distortion>,
    batch_size: usize,
    epochs: u64,
}

impl Digits {
    fn new(options: &DigitsOptions) -> Result<Self> {
        let model = DigitsModel::new(options.run.seed, options.hidden, &Device::Cpu)?;
        let (batch_size, epochs) = (options.batch_size as usize, options.epochs.into());
        Ok(Self { model, distortion: options.distortion(), batch_size, epochs })
    }

    fn steps_per_epoch(&self) -> u64 {
        self.model.steps_per_epoch(self.batch_size)
    }
}

impl TrainingTask for Digits {
    const NAME: &str = "digits";

    fn parameters(&self) -> &Parameters {
        self.model.parameters()
    }

    fn total_steps(&self) -> u64 {
        self.epochs * self.steps_per_epoch()
    }

    fn loss(&self, step: u64, shard: Shard) -> Result<Tensor> {
        let batch = self.model.batch(step, self.batch_size);
        let (numbers, weight) = shard.part(&batch);
        let loss = match self.distortion {
            Some(distortion) => self.model.distorted_loss(distortion, step, numbers)?,
            None => self.model.loss(numbers)?,
        };
        Ok((loss * weight)?)
    }

    fn line_after(&self, steps: u64, loss: f32) -> Result<Option<String>> {
        if !steps.is_multiple_of(self.steps_per_epoch()) {
            return Ok(None);
        }
        let (epoch, epochs, total) = (steps / self.steps_per_epoch(), self.epochs, self.total_steps());
        let accuracy = 100.0 * self.model.accuracy()?;
        Ok(Some(format!(
            "epoch {epoch:>3}/{epochs}  step {steps:>5}/{total}  loss {loss:.4}  test accuracy {accuracy:.1}%"
        )))
    }
}

#[cfg(test)]
mod tests;
