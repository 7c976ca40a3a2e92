//! The additive model with a low-rank interaction of two jobs.
//!
//! The logarithm of a slowdown is the sensitivity of the job, plus the pressure of its partner, plus a few
//! products of a factor of the job and a factor of its partner. Each of these is a sum of effects of the
//! job's covariates: its configuration, model and family, on this GPU model and on any. Ridge regression
//! finds the effects, those of the factors in alternation. A model contains these effects and no measurement.

mod covariates;
mod effects;
mod factors;
mod model;
#[cfg(test)]
mod tests;

use self::model::LowRank;
use super::calibration::Calibration;
use super::model::{Epoch, Model, ModelKind, RestoreError, TrainError, TrainingData, Weights};

/// The low-rank models.
#[derive(Debug)]
pub(super) struct LowRankKind;

impl ModelKind for LowRankKind {
    fn name(&self) -> &'static str {
        "low-rank"
    }

    /// Held-back data only calibrates the uncertainty, and is learned from as well.
    fn train(
        &self,
        data: &TrainingData<'_>,
        watch: &mut dyn FnMut(&Epoch),
    ) -> Result<Box<dyn Model>, TrainError> {
        let learn = |measured: &[_], calibration| LowRank::learn(measured, data.seed, calibration);
        let model = Calibration::train_calibrated(data, learn)?;
        watch(&Epoch { epoch: 1, of: 1, loss: model.loss(&data.all()), held_back_loss: None });
        Ok(Box::new(model))
    }

    fn restore(&self, weights: &Weights) -> Result<Box<dyn Model>, RestoreError> {
        Ok(Box::new(LowRank::restored(weights)?))
    }
}
