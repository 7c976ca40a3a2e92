//! Training a model on all measurements, and saying how good it is on what it never saw.

use cohabit_policy::interference::MeasuredSet;

use super::cross_validation::{HoldOut, folds, held_back};
use super::evaluate::EvaluationAccumulator;
use super::model::{Epoch, Model, ModelKind, TrainError, TrainingData};

/// How a model is trained.
#[derive(Debug, Clone, Copy)]
pub struct ModelTrainer {
    /// Which kind.
    pub kind: &'static dyn ModelKind,
    /// Of everything that is drawn.
    pub seed: u64,
    /// At most so many epochs; as many as the kind takes without it.
    pub epochs: Option<usize>,
}

/// One set in so many is held back to tell when to stop.
const HELD_BACK_ONE_IN: usize = 10;

impl ModelTrainer {
    /// Trains on these measurements; a part of them is held back to tell when to stop.
    ///
    /// # Errors
    /// Where nothing can be learned from them.
    pub fn train(
        &self,
        measured: &[MeasuredSet],
        watch: &mut dyn FnMut(&Epoch),
    ) -> Result<Box<dyn Model>, TrainError> {
        let (train, held_back) = held_back(measured, HELD_BACK_ONE_IN, self.seed);
        let lesson =
            TrainingData { train: &train, held_back: &held_back, seed: self.seed, epochs: self.epochs };
        self.kind.train(&lesson, watch)
    }

    /// Asks such models about what they never saw: one is trained for each division and asked about what was
    /// held out of it, after `observed` sets with each newcomer on each GPU. What they say is added to the
    /// tally; `watch` is told what is held out, too.
    ///
    /// # Errors
    /// As [`ModelTrainer::train`].
    pub fn cross_validate(
        &self,
        measured: &[MeasuredSet],
        hold_out: HoldOut,
        observed: usize,
        tally: &mut EvaluationAccumulator,
        watch: &mut dyn FnMut(&str, &Epoch),
    ) -> Result<(), TrainError> {
        for fold in folds(measured, hold_out, observed, self.seed) {
            let model = self.train(&fold.train, &mut |epoch| watch(&fold.held_out, epoch))?;
            if fold.observed.is_empty() {
                tally.ask(&*model, &fold.test);
            } else {
                tally.ask(&*model.adapted(&fold.observed), &fold.test);
            }
        }
        Ok(())
    }
}
