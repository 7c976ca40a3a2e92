//! Trains an ensemble: the data, the base model and the early stopping of each network.
//!
//! During training the base model must be as accurate as it will be later, and no better: for every set the
//! networks get the prediction of a Gaussian process that was not trained on this set.

use std::sync::Arc;

use cohabit_policy::interference::{ColocationSet, Interference, MeasuredSet, SetOutcome};

use super::batch::NetworkInput;
use super::ensemble::{Ensemble, EnsembleOutput, HeldOutError, answers, metric_importance};
use super::feature_encoder::FeatureEncoder;
use super::network::{BaseModel, Network, TrainingOptions};
use super::training::{Example, NetworkTrainer, TrainedNetwork};
use super::usage_outputs::UsageOutputs;
use crate::interference::cross_validation::parts;
use crate::interference::gaussian::GAUSSIAN_KIND;
use crate::interference::model::{Epoch, Model, ModelKind, TrainError, TrainingData};
use crate::interference::usage_model::UsageModel;

/// The number of folds. Each network of an ensemble holds back one of them.
const FOLDS: usize = 5;

/// An example with its fold.
struct FoldExample<'a> {
    part: usize,
    example: Example<'a>,
}

/// Trains an ensemble.
pub(super) fn train<N: Network>(
    data: &TrainingData<'_>,
    training_options: TrainingOptions,
    watch: &mut dyn FnMut(&Epoch),
) -> Result<Ensemble<N>, TrainError> {
    let all = data.all();
    let base = train_base_model(&all, data.seed)?;
    let examples = examples::<N>(data, UsageModel::learn(&all))?;
    let mut encoder = FeatureEncoder::learn(&all, N::SCALING);
    let expected: Vec<_> = examples.iter().map(|it| it.example.expected()).collect();
    encoder.usage = UsageOutputs::learn(&expected);
    let TrainingOptions { ensemble, epochs, .. } = training_options;
    let (mut networks, mut held_out_errors) = (Vec::new(), HeldOutErrorSum::default());
    for part in 0..ensemble {
        let (stop, learn): (Vec<&FoldExample<'_>>, Vec<&FoldExample<'_>>) =
            examples.iter().partition(|it| it.part == part || it.part == FOLDS);
        let trainer = NetworkTrainer {
            train: learn.iter().map(|it| &it.example).collect(),
            held_back: stop.iter().map(|it| &it.example).collect(),
            seed: data.seed.wrapping_mul(1_000).wrapping_add(part as u64),
            training_options,
        };
        let mut on_epoch = |epoch: &Epoch| {
            watch(&Epoch { epoch: part * epochs + epoch.epoch, of: ensemble * epochs, ..*epoch });
        };
        let trained: [TrainedNetwork<N>; 1] = [trainer.train(&encoder, &mut on_epoch)?];
        held_out_errors.add(&trained, &encoder, &trainer.held_back)?;
        networks.extend(trained);
    }
    let base_weights = base.weights();
    let base: Box<dyn Interference> = base;
    Ok(Ensemble {
        metric_importance: metric_importance(&networks, &encoder, &all),
        held_out_error: held_out_errors.root_mean_squares(&encoder.usage),
        networks: Arc::new(networks),
        encoder,
        width: training_options.width,
        base: Arc::from(base),
        base_weights,
    })
}

/// Trains the Gaussian process that is the base model.
fn train_base_model(measured: &[MeasuredSet], seed: u64) -> Result<Box<dyn Model>, TrainError> {
    let data = TrainingData { train: measured, held_back: &[], seed, epochs: None };
    GAUSSIAN_KIND.train(&data, &mut |_| ())
}

/// Every set that ran, with its fold and the prediction of a process that was not trained on this fold.
/// What the members use is scaled by `usage`, as the base model does that was trained on everything.
fn examples<'a, N: Network>(
    data: &TrainingData<'a>,
    usage: UsageModel,
) -> Result<Vec<FoldExample<'a>>, TrainError> {
    let ran = |measured: &'a [MeasuredSet]| {
        let ran = |it: &&MeasuredSet| it.set.members.len() > 1 && matches!(it.outcome, SetOutcome::Ran(_));
        measured.iter().filter(ran).collect::<Vec<&MeasuredSet>>()
    };
    let (train, held_back) = (ran(data.train), ran(data.held_back));
    let mut sets = train.clone();
    sets.extend(&held_back);
    let mut part_of = parts(&train, FOLDS, data.seed);
    part_of.resize(sets.len(), FOLDS);
    let mut examples = Vec::new();
    for part in 0..=FOLDS {
        let (asked, others): (Vec<usize>, Vec<usize>) = (0..sets.len()).partition(|at| part_of[*at] == part);
        let asked: Vec<&MeasuredSet> = asked.into_iter().map(|at| sets[at]).collect();
        let others: Vec<MeasuredSet> = others.into_iter().map(|at| sets[at].clone()).collect();
        examples.extend(with_base_predictions::<N>(&asked, &others, data.seed, part)?);
    }
    for Example { question, .. } in examples.iter_mut().map(|it| &mut it.example) {
        for (place, base) in question.base.iter_mut().enumerate() {
            *base = usage.complete(question.set, place, *base);
        }
    }
    Ok(examples)
}

/// The predictions for `asked` by a process trained on `others`.
fn with_base_predictions<'a, N: Network>(
    asked: &[&'a MeasuredSet],
    others: &[MeasuredSet],
    seed: u64,
    part: usize,
) -> Result<Vec<FoldExample<'a>>, TrainError> {
    let sets: Vec<ColocationSet> = asked.iter().map(|it| it.set.clone()).collect();
    let of_process = || match train_base_model(others, seed) {
        Ok(process) => Ok(process.predict(&sets)),
        // There is too little data: the networks have no base prediction here.
        Err(TrainError::NoPairs) => Ok(vec![Vec::new(); sets.len()]),
        Err(error @ TrainError::Tensors(_)) => Err(error),
    };
    let predicted = match N::BASE_MODEL {
        BaseModel::Process if !sets.is_empty() => of_process()?,
        BaseModel::Process | BaseModel::Nothing => vec![Vec::new(); sets.len()],
    };
    let example = |(measured, base): (&&'a MeasuredSet, _)| {
        let question = NetworkInput { set: &measured.set, base };
        FoldExample { part, example: Example { question, measured } }
    };
    Ok(asked.iter().zip(predicted).map(example).collect())
}

/// Accumulates errors on held-back sets.
#[derive(Debug, Default)]
struct HeldOutErrorSum {
    error: f64,
    relative_to_base: f64,
    members: usize,
    memory: f64,
    members_with_memory: usize,
}

impl HeldOutErrorSum {
    fn add<N: Network>(
        &mut self,
        networks: &[TrainedNetwork<N>],
        encoder: &FeatureEncoder,
        held_back: &[&Example<'_>],
    ) -> candle_core::Result<()> {
        let questions: Vec<NetworkInput<'_>> = held_back.iter().map(|it| it.question.clone()).collect();
        for (predicted, example) in answers(networks, encoder, &questions)?.iter().zip(held_back) {
            self.add_memory(&encoder.usage, predicted, example);
            let SetOutcome::Ran(observed) = &example.measured.outcome else { continue };
            let base = example.question.base.iter().map(Some).chain(std::iter::repeat(None));
            for ((predicted, observed), base) in predicted.iter().zip(observed).zip(base) {
                let error = predicted.mean.ln_slowdown - observed.slowdown.max(1.0).ln();
                // Without a base prediction, the error counts as being as large as stated.
                let unsure = base.map_or(error.abs(), |base| base.uncertainty).max(f64::MIN_POSITIVE);
                self.error += error.powi(2);
                self.relative_to_base += (error / unsure).powi(2);
                self.members += 1;
            }
        }
        Ok(())
    }

    fn add_memory(&mut self, outputs: &UsageOutputs, predicted: &[EnsembleOutput], example: &Example<'_>) {
        let Some(output) = outputs.of_memory() else { return };
        for (predicted, measured) in predicted.iter().zip(outputs.measured(example.expected())) {
            if let Some(measured) = measured[output] {
                self.memory += (predicted.mean.usage[output] - measured).powi(2);
                self.members_with_memory += 1;
            }
        }
    }

    fn root_mean_squares(&self, outputs: &UsageOutputs) -> HeldOutError {
        let root = |sum: f64, count: usize| (sum / count.max(1) as f64).sqrt();
        HeldOutError {
            error: root(self.error, self.members),
            relative_to_base: root(self.relative_to_base, self.members),
            memory: outputs.of_memory().map(|_| root(self.memory, self.members_with_memory)),
        }
    }
}
