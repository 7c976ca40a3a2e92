//! Trains a model on all measurements, and cross-validates it.

use cohabit_policy::interference::MeasuredSet;

use super::cross_validation::{HoldOut, folds, held_back};
use super::evaluate::EvaluationAccumulator;
use super::model::{Epoch, Model, ModelKind, TrainError, TrainingData};
use super::usage_model::UsageModel;

/// The settings of a training.
#[derive(Debug, Clone, Copy)]
pub struct ModelTrainer {
    /// The kind of model.
    pub kind: &'static dyn ModelKind,
    /// The seed of all random draws.
    pub seed: u64,
    /// The largest number of epochs; `None` for the default of the kind.
    pub epochs: Option<usize>,
}

/// One in this many sets is held back to decide when to stop.
const HELD_BACK_ONE_IN: usize = 10;

impl ModelTrainer {
    /// Trains on these measurements; some are held back to decide when to stop.
    ///
    /// # Errors
    ///
    /// If nothing can be learned from them.
    pub fn train(
        &self,
        measured: &[MeasuredSet],
        watch: &mut dyn FnMut(&Epoch),
    ) -> Result<Box<dyn Model>, TrainError> {
        let (train, held_back) = held_back(measured, HELD_BACK_ONE_IN, self.seed);
        let data =
            TrainingData { train: &train, held_back: &held_back, seed: self.seed, epochs: self.epochs };
        self.kind.train(&data, watch)
    }

    /// Cross-validates: trains a model for each split and adds its predictions for the test data to the
    /// accumulator, after it has observed `observed` sets with each newcomer on each GPU. `watch` is also
    /// told what is held out.
    ///
    /// # Errors
    ///
    /// As [`ModelTrainer::train`].
    pub fn cross_validate(
        &self,
        measured: &[MeasuredSet],
        hold_out: HoldOut,
        observed: usize,
        accumulator: &mut EvaluationAccumulator,
        watch: &mut dyn FnMut(&str, &Epoch),
    ) -> Result<(), TrainError> {
        for fold in folds(measured, hold_out, observed, self.seed) {
            let model = self.train(&fold.train, &mut |epoch| watch(&fold.held_out, epoch))?;
            let scaling = UsageModel::learn(&fold.train);
            if fold.observed.is_empty() {
                accumulator.add(&*model, &scaling, &fold.test);
            } else {
                accumulator.add(&*model.adapted(&fold.observed), &scaling, &fold.test);
            }
        }
        Ok(())
    }
}
