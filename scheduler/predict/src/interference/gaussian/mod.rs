//! The additive model, and the model that adds an interaction of particular jobs with particular partners.
//!
//! The logarithm of a slowdown is the sensitivity of the job, plus the pressure of its partner, plus an
//! interaction of the two. All three are drawn from one Gaussian process, in which jobs of one configuration,
//! model or family, and jobs with similar numbers, are similar, on one GPU more than on two. This is ridge
//! regression whose shrinkage says how far unseen jobs may differ, solved in closed form.

mod corrected;
mod known_jobs;
mod model;
mod prior;
mod process;
mod questions;
mod row_table;
#[cfg(test)]
mod tests;

use self::model::Gaussian;
use self::prior::{ADDITIVE, Prior, WITH_PAIRS};
use super::calibration::Calibration;
use super::model::{Epoch, Model, ModelKind, RestoreError, TrainError, TrainingData, Weights};

pub(super) use self::corrected::CorrectedModel;

/// Gaussian processes with a certain prior.
#[derive(Debug)]
pub(super) struct GaussianKind {
    name: &'static str,
    prior: Prior,
}

/// Sensitivity and pressure.
pub(super) const ADDITIVE_KIND: GaussianKind = GaussianKind { name: "additive", prior: ADDITIVE };
/// Sensitivity, pressure and interactions of pairs.
pub(super) const GAUSSIAN_KIND: GaussianKind = GaussianKind { name: "gaussian", prior: WITH_PAIRS };

impl ModelKind for GaussianKind {
    fn name(&self) -> &'static str {
        self.name
    }

    /// Solves in closed form: held-back data only calibrates the uncertainty, and is learned from as well.
    fn train(
        &self,
        data: &TrainingData<'_>,
        watch: &mut dyn FnMut(&Epoch),
    ) -> Result<Box<dyn Model>, TrainError> {
        let learn = |measured: &[_], calibration| Gaussian::learn(measured, self.prior, calibration);
        let model = Calibration::train_calibrated(data, learn)?;
        watch(&Epoch { epoch: 1, of: 1, loss: model.loss(&data.all()), held_back_loss: None });
        Ok(Box::new(model))
    }

    fn restore(&self, weights: &Weights) -> Result<Box<dyn Model>, RestoreError> {
        Ok(Box::new(Gaussian::restored(weights)?))
    }
}
