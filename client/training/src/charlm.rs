//! `charlm`: trains a small recurrent network to write English, character by character.
//!
//! It trains on a few pages of a novel, is tested on an unseen page, and writes a few lines at the end. The
//! passages of a step are a function of the seed and the step.

mod network;
mod text;

use std::collections::BTreeMap;

use anyhow::Result;
use candle_core::{Device, Tensor};
use candle_nn::loss::cross_entropy;
use candle_nn::ops::softmax;
use clap::{Args, value_parser};
use rand::RngExt as _;

use self::network::Network;
use self::text::Text;
use crate::job_context::JobContext;
use crate::options::{RunOptions, positive_number};
use crate::parameters::Parameters;
use crate::process_group::Shard;
use crate::random::{RandomStream, generator};
use crate::training_loop::{self, TrainingConfig, TrainingEnd, TrainingTask};

/// Characters in a training passage.
const PASSAGE_LENGTH: usize = 48;
const STEPS_PER_LINE: u64 = 20;

/// Options of `charlm`.
#[derive(Clone, Debug, Args)]
pub struct CharlmOptions {
    /// Number of steps; may be increased when resuming
    #[arg(long, default_value_t = 300, value_parser = value_parser!(u64).range(1..))]
    pub steps: u64,

    /// Learning rate of the Adam optimizer
    #[arg(long, default_value_t = 0.005, allow_negative_numbers = true, value_parser = positive_number)]
    pub learning_rate: f64,

    /// Width of the recurrent layer
    #[arg(long, default_value_t = 128, value_parser = value_parser!(u32).range(1..=8192))]
    pub hidden: u32,

    /// Passages per step, summed over all ranks
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u32).range(1..=4096))]
    pub batch_size: u32,

    /// Number of characters to generate at the end
    #[arg(long, default_value_t = 300)]
    pub sample_length: u32,

    /// Sampling temperature: a value below 1 prefers likely characters
    #[arg(long, default_value_t = 0.7, allow_negative_numbers = true, value_parser = positive_number)]
    pub temperature: f64,

    #[command(flatten)]
    pub run: RunOptions,
}

impl CharlmOptions {
    /// The options that must equal those of a checkpoint. The number of steps and the sampling may differ.
    fn by_flag(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("--batch-size".to_owned(), self.batch_size.to_string()),
            ("--hidden".to_owned(), self.hidden.to_string()),
            ("--learning-rate".to_owned(), self.learning_rate.to_string()),
            ("--seed".to_owned(), self.run.seed.to_string()),
        ])
    }
}

/// Trains, and prints the loss on the test page and a few lines written by the network.
pub(super) fn train(options: &CharlmOptions, job: &mut JobContext) -> Result<TrainingEnd> {
    let charlm = Charlm::new(options)?;
    let group = options.run.process_group(job)?;
    let (characters, parameters) = (charlm.text.training().len(), charlm.parameters.element_count());
    let entropy = charlm.text.unigram_entropy();
    job.print_line(&format!("{characters} characters, {parameters} parameters"));
    job.print_line(&format!(
        "guessing by letter frequency alone has a loss of {entropy:.3} nats per character"
    ));
    let plan = TrainingConfig {
        learning_rate: options.learning_rate,
        options: options.by_flag(),
        run: &options.run,
    };
    let ending = training_loop::train(&charlm, plan, group, job)?;
    if ending == TrainingEnd::Finished {
        job.print_line(&format!(
            "loss {:.3} nats per character on text never seen in training",
            charlm.test_loss()?
        ));
        job.print_line(&format!("---\n{}\n---", charlm.sample(options.sample_length, options.temperature)?));
    }
    Ok(ending)
}

struct Charlm {
    text: Text,
    parameters: Parameters,
    network: Network,
    seed: u64,
    batch_size: usize,
    total_steps: u64,
}

impl Charlm {
    fn new(options: &CharlmOptions) -> Result<Self> {
        let (seed, batch_size, total_steps) = (options.run.seed, options.batch_size as usize, options.steps);
        let text = Text::new()?;
        let mut parameters = Parameters::new(seed);
        let network = Network::new(&mut parameters, text.alphabet_size(), options.hidden as usize)?;
        Ok(Self { text, parameters, network, seed, batch_size, total_steps })
    }

    /// The mean loss over passages that start with a zero state, in nats per character.
    fn passage_loss(&self, text: &[u32], starts: &[usize]) -> Result<Tensor> {
        let characters =
            |offset: usize| -> Vec<u32> { starts.iter().map(|start| text[start + offset]).collect() };
        let mut state = self.network.first_state(starts.len())?;
        let (mut states, mut targets) = (Vec::new(), Vec::new());
        for offset in 0..PASSAGE_LENGTH {
            state = self.network.next_state(&state, &Tensor::new(characters(offset), &Device::Cpu)?)?;
            states.push(state.clone());
            targets.extend(characters(offset + 1));
        }
        let scores = self.network.scores(&Tensor::cat(&states, 0)?)?;
        Ok(cross_entropy(&scores, &Tensor::new(targets, &Device::Cpu)?)?)
    }

    /// The loss on the test page, divided into passages.
    fn test_loss(&self) -> Result<f32> {
        let text = self.text.test();
        let starts: Vec<usize> = (0..text.len() - PASSAGE_LENGTH).step_by(PASSAGE_LENGTH).collect();
        Ok(self.passage_loss(text, &starts)?.to_scalar()?)
    }

    /// Samples `length` characters from the network.
    fn sample(&self, length: u32, temperature: f64) -> Result<String> {
        let mut generator = generator(self.seed, RandomStream::Sample);
        let (mut state, mut number) = (self.network.first_state(1)?, self.text.number_of('\n')?);
        let mut sample = String::new();
        for _ in 0..length {
            state = self.network.next_state(&state, &Tensor::new(&[number], &Device::Cpu)?)?.detach();
            let odds =
                softmax(&(self.network.scores(&state)? / temperature)?, 1)?.flatten_all()?.to_vec1()?;
            number = sample_index(&odds, generator.random_range(0.0..1.0));
            sample.push(self.text.letter(number)?);
        }
        Ok(sample)
    }
}

/// Samples an index from the probabilities, given a uniform `point` from 0 to 1.
fn sample_index(odds: &[f32], point: f32) -> u32 {
    let mut left = point;
    let position = odds.iter().position(|share| {
        left -= share;
        left < 0.0
    });
    position.unwrap_or(odds.len() - 1) as u32
}

impl TrainingTask for Charlm {
    const NAME: &str = "charlm";

    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn total_steps(&self) -> u64 {
        self.total_steps
    }

    fn loss(&self, step: u64, shard: Shard) -> Result<Tensor> {
        let mut generator = generator(self.seed, RandomStream::Step(step));
        let text = self.text.training();
        let last_start = text.len() - PASSAGE_LENGTH - 1;
        let starts: Vec<usize> =
            (0..self.batch_size).map(|_| generator.random_range(0..=last_start)).collect();
        let (starts, weight) = shard.part(&starts);
        Ok((self.passage_loss(text, starts)? * weight)?)
    }

    fn line_after(&self, steps: u64, loss: f32) -> Result<Option<String>> {
        let total = self.total_steps;
        let is_due = steps.is_multiple_of(STEPS_PER_LINE) || steps == total;
        Ok(is_due.then(|| format!("step {steps:>5}/{total}  loss {loss:.4}")))
    }
}

#[cfg(test)]
mod tests;
