//! Calibrates uncertainties on sets that a model was not trained on.

use cohabit_policy::interference::{Interference, MeasuredSet};
use serde::{Deserialize, Serialize};

use super::log_slowdown::{LogSlowdown, ran};
use super::model::{TrainError, TrainingData};

/// The factor on standard deviations with which measurements deviate from predictions as much as stated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibration(f64);

/// The weight of the prior factor 1, in measurements.
const PRIOR_WEIGHT: f64 = 10.0;

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration(1.0)
    }
}

impl Calibration {
    /// Trains a model twice: on a part, to measure its errors on the held-back rest, and on everything.
    ///
    /// # Errors
    ///
    /// Those of `learn`.
    pub(crate) fn train_calibrated<M: Interference>(
        data: &TrainingData<'_>,
        learn: impl Fn(&[MeasuredSet], Calibration) -> Result<M, TrainError>,
    ) -> Result<M, TrainError> {
        if data.held_back.is_empty() {
            return learn(data.train, Calibration::default());
        }
        let calibration = match learn(data.train, Calibration::default()) {
            Ok(model) => Calibration::of(&model, data.held_back),
            // A part without any pair says nothing; the whole may still have pairs.
            Err(TrainError::NoPairs) => Calibration::default(),
            Err(error @ TrainError::Tensors(_)) => return Err(error),
        };
        learn(&data.all(), calibration)
    }

    fn of(model: &dyn Interference, held_back: &[MeasuredSet]) -> Calibration {
        let sets: Vec<_> = held_back.iter().map(|it| it.set.clone()).collect();
        let predicted = model.predict(&sets);
        let (mut square, mut count) = (PRIOR_WEIGHT, PRIOR_WEIGHT);
        for (predicted, measured) in predicted.iter().zip(held_back) {
            for (_, member, observed) in ran(std::slice::from_ref(measured)) {
                let apart = (predicted[member].slowdown / observed.slowdown.max(1.0)).ln();
                square += (apart / predicted[member].uncertainty.max(f64::MIN_POSITIVE)).powi(2);
                count += 1.0;
            }
        }
        Calibration((square / count).sqrt())
    }

    /// The prediction with a calibrated variance.
    pub(crate) fn rescale(self, expected: LogSlowdown) -> LogSlowdown {
        LogSlowdown { variance: expected.variance * self.0 * self.0, ..expected }
    }
}
