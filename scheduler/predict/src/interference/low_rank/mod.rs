//! The additive model with factors of low rank for what is special of two jobs together.
//!
//! The logarithm of a slowdown is how much the job suffers, plus how much its partner makes suffer, plus a
//! few products of a factor of the job and a factor of its partner. All of them are sums of effects of what a
//! job is: its configuration, model and family, on this make of GPU and on any. Effects are found by ridge
//! regression, those of factors in turn. A model holds these effects and no measurement.

mod covariates;
mod effects;
mod factors;
mod model;
#[cfg(test)]
mod tests;

use self::model::LowRank;
use super::calibration::Calibration;
use super::model::{Epoch, Model, ModelKind, RestoreError, TrainError, TrainingData, Weights};

/// Models of this kind.
#[derive(Debug)]
pub(super) struct LowRankKind;

impl ModelKind for LowRankKind {
    fn name(&self) -> &'static str {
        "low-rank"
    }

    /// What is held back only tells how sure the model may be, and is learned from as well.
    fn train(
        &self,
        lesson: &TrainingData<'_>,
        watch: &mut dyn FnMut(&Epoch),
    ) -> Result<Box<dyn Model>, TrainError> {
        let learn = |measured: &[_], calibration| LowRank::learn(measured, lesson.seed, calibration);
        let model = Calibration::train_calibrated(lesson, learn)?;
        watch(&Epoch { epoch: 1, of: 1, loss: model.loss(&lesson.all()), held_back_loss: None });
        Ok(Box::new(model))
    }

    fn restore(&self, weights: &Weights) -> Result<Box<dyn Model>, RestoreError> {
        Ok(Box::new(LowRank::restored(weights)?))
    }
}
