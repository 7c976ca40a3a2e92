//! The additive model, and the one that adds what certain jobs do to certain partners to it.
//!
//! The logarithm of a slowdown is how much a job suffers, plus how much its partner makes suffer, plus what
//! is special of the two together. All three are drawn from one Gaussian process: jobs of one configuration,
//! model or family, and those whose numbers are close, are alike, on one GPU more than on two. That is ridge
//! regression whose shrinkage says how far the unseen may differ, and it is solved in closed form.

mod corrected;
mod known_jobs;
mod model;
mod prior;
mod process;
#[cfg(test)]
mod tests;

use self::model::Gaussian;
use self::prior::{ADDITIVE, Prior, WITH_PAIRS};
use super::calibration::Calibration;
use super::model::{Epoch, Model, ModelKind, RestoreError, TrainError, TrainingData, Weights};

pub(super) use self::corrected::CorrectedModel;

/// A Gaussian process of a certain prior.
#[derive(Debug)]
pub(super) struct GaussianKind {
    name: &'static str,
    prior: Prior,
}

/// Own sensitivity and partners' pressure.
pub(super) const ADDITIVE_KIND: GaussianKind = GaussianKind { name: "additive", prior: ADDITIVE };
/// And what is special of two jobs together.
pub(super) const GAUSSIAN_KIND: GaussianKind = GaussianKind { name: "gaussian", prior: WITH_PAIRS };

impl ModelKind for GaussianKind {
    fn name(&self) -> &'static str {
        self.name
    }

    /// Solved at once: what is held back only tells how sure the model may be, and is learned from as well.
    fn train(
        &self,
        lesson: &TrainingData<'_>,
        watch: &mut dyn FnMut(&Epoch),
    ) -> Result<Box<dyn Model>, TrainError> {
        let learn = |measured: &[_], calibration| Gaussian::learn(measured, self.prior, calibration);
        let model = Calibration::train_calibrated(lesson, learn)?;
        watch(&Epoch { epoch: 1, of: 1, loss: model.loss(&lesson.all()), held_back_loss: None });
        Ok(Box::new(model))
    }

    fn restore(&self, weights: &Weights) -> Result<Box<dyn Model>, RestoreError> {
        Ok(Box::new(Gaussian::restored(weights)?))
    }
}
