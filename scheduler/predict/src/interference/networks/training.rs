//! Trains one network: AdamW with clipped gradients, until the loss on held-back data no longer improves.

use candle_core::{DType, Result};
use candle_nn::{AdamW, Optimizer};
use cohabit_policy::interference::MeasuredSet;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::batch::{NetworkInput, SetBatch, Targets};
use super::feature_encoder::FeatureEncoder;
use super::layers::Mode;
use super::network::{Network, NetworkOutput, TrainingOptions};
use super::row_network::{MemberOutput, RowNetwork};
use super::usage_outputs::ExpectedSet;
use super::usage_targets::UsageTargets;
use crate::interference::model::Epoch;
use crate::networks::{PRECISION, Parameters, adam_w, clip, number};
use crate::random::RandomExt;

/// A network with its parameters.
#[derive(Debug)]
pub(super) struct TrainedNetwork<N> {
    pub(super) network: N,
    pub(super) parameters: Parameters,
    /// The same network in plain Rust, if there is one.
    pub(super) rows: Option<Box<dyn RowNetwork>>,
}

/// An input with its measurement.
#[derive(Debug, Clone)]
pub(super) struct Example<'a> {
    pub(super) question: NetworkInput<'a>,
    pub(super) measured: &'a MeasuredSet,
}

impl Example<'_> {
    /// The measurement with the predictions of the base model.
    pub(super) fn expected(&self) -> ExpectedSet<'_> {
        (&self.question.base, self.measured)
    }
}

/// The data and the settings for one network.
#[derive(Debug)]
pub(super) struct NetworkTrainer<'a> {
    pub(super) train: Vec<&'a Example<'a>>,
    /// Decides when to stop and which epoch was the best; may be empty.
    pub(super) held_back: Vec<&'a Example<'a>>,
    pub(super) seed: u64,
    pub(super) training_options: TrainingOptions,
}

/// Sets with their measurements as tensors.
struct EncodedExamples {
    batch: SetBatch,
    targets: Targets,
}

impl EncodedExamples {
    fn of<N: Network>(encoder: &FeatureEncoder, examples: &[&Example<'_>]) -> Result<EncodedExamples> {
        let questions: Vec<NetworkInput<'_>> = examples.iter().map(|it| it.question.clone()).collect();
        let measured: Vec<&MeasuredSet> = examples.iter().map(|it| it.measured).collect();
        let batch = SetBatch::of(encoder, &questions, N::EDGES, PRECISION)?;
        let mut targets = Targets::of(&measured, batch.count, PRECISION)?;
        let expected: Vec<_> = examples.iter().map(|it| it.expected()).collect();
        targets.usage = UsageTargets::of(&encoder.usage, &expected, batch.count, PRECISION)?;
        Ok(EncodedExamples { batch, targets })
    }
}

impl NetworkTrainer<'_> {
    /// Trains a network. Its parameters are those of the best epoch.
    pub(super) fn train<N: Network>(
        &self,
        encoder: &FeatureEncoder,
        watch: &mut dyn FnMut(&Epoch),
    ) -> Result<TrainedNetwork<N>> {
        let TrainingOptions { epochs, patience, width, learning_rate, weight_decay, .. } =
            self.training_options;
        let mut parameters = Parameters::drawn(self.seed, PRECISION);
        let network = N::new(&mut parameters, encoder, width)?;
        let mut optimizer = adam_w(parameters.iter(), learning_rate, weight_decay)?;
        let mut random = ChaCha8Rng::seed_from_u64(self.seed.wrapping_add(1));
        let held_back = match &self.held_back[..] {
            [] => None,
            held_back => Some(EncodedExamples::of::<N>(encoder, held_back)?),
        };
        let (mut best, mut best_epoch) = (f64::INFINITY, 0);
        let mut best_values = parameters.values()?;
        for epoch in 1..=epochs {
            optimizer.set_learning_rate(self.rate(epoch));
            let loss = self.epoch(&network, encoder, &parameters, &mut optimizer, &mut random)?;
            let loss_of = |it: &EncodedExamples| network.loss(&it.batch, &it.targets, &mut Mode::Inference);
            let held_back_loss = held_back.as_ref().map(|it| number(&loss_of(it)?)).transpose()?;
            watch(&Epoch { epoch, of: epochs, loss, held_back_loss });
            if held_back_loss.unwrap_or(loss) < best {
                (best, best_epoch) = (held_back_loss.unwrap_or(loss), epoch);
                best_values = parameters.values()?;
            }
            if epoch >= best_epoch + patience {
                break;
            }
        }
        parameters.set(&best_values)?;
        let rows = N::rows(&parameters, encoder, width)?;
        Ok(TrainedNetwork { network, parameters, rows })
    }

    /// The learning rate, which falls along half a cosine.
    fn rate(&self, epoch: usize) -> f64 {
        let TrainingOptions { learning_rate, final_rate_part, epochs, .. } = self.training_options;
        let passed = (epoch - 1) as f64 / epochs.saturating_sub(1).max(1) as f64;
        let part = 0.5 * (1.0 + (std::f64::consts::PI * passed).cos());
        learning_rate * (final_rate_part + (1.0 - final_rate_part) * part)
    }

    /// Trains on all sets once in random order, and returns the mean loss.
    fn epoch<N: Network>(
        &self,
        network: &N,
        encoder: &FeatureEncoder,
        parameters: &Parameters,
        optimizer: &mut AdamW,
        random: &mut ChaCha8Rng,
    ) -> Result<f64> {
        let mut order = self.train.clone();
        random.shuffle(&mut order);
        let (mut sum, mut steps) = (0.0, 0);
        for part in order.chunks(self.training_options.batch) {
            let EncodedExamples { batch, targets } = EncodedExamples::of::<N>(encoder, part)?;
            let loss = network.loss(&batch, &targets, &mut Mode::Training(random))?;
            let mut gradients = loss.backward()?;
            clip(&mut gradients, parameters.iter(), self.training_options.max_gradient_norm)?;
            optimizer.step(&gradients)?;
            sum += number(&loss)?;
            steps += 1;
        }
        Ok(sum / f64::from(steps.max(1)))
    }
}

impl<N: Network> TrainedNetwork<N> {
    /// The outputs for each member of each set of a batch, by the network as it was trained.
    pub(super) fn predict(
        &self,
        batch: &SetBatch,
        inputs_of_sets: &[NetworkInput<'_>],
    ) -> Result<Vec<MemberOutput>> {
        let NetworkOutput { ln_slowdown, usage } = self.network.forward(batch, &mut Mode::Inference)?;
        let ln_slowdown: Vec<f64> =
            ln_slowdown.detach().relu()?.to_dtype(DType::F64)?.flatten_all()?.to_vec1()?;
        let usage = match usage {
            Some(usage) => usage.detach().to_dtype(DType::F64)?.to_vec2()?,
            None => vec![Vec::new(); ln_slowdown.len()],
        };
        let sizes = inputs_of_sets.iter().map(|it| it.set.members.len()).enumerate();
        let present = sizes.flat_map(|(at, size)| (0..size).map(move |place| at * batch.count + place));
        let row = |row: usize| MemberOutput { ln_slowdown: ln_slowdown[row], usage: usage[row].clone() };
        Ok(present.map(row).collect())
    }
}
