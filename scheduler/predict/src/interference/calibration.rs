//! Uncertainties that are honest: measured against sets that a model was not shown.

use cohabit_policy::interference::{Interference, MeasuredSet};
use serde::{Deserialize, Serialize};

use super::log_slowdown::{LogSlowdown, ran};
use super::model::{TrainError, TrainingData};

/// By what standard deviations are multiplied so that measurements lie as far away as they say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibration(f64);

/// The square of the factor counts as much as so many measurements before there are any.
const PRIOR_WEIGHT: f64 = 10.0;

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration(1.0)
    }
}

impl Calibration {
    /// Learns a model twice: from a part, to see how far it is off on what is held back, and from all of it.
    ///
    /// # Errors
    /// As those of `learn`.
    pub(crate) fn train_calibrated<M: Interference>(
        lesson: &TrainingData<'_>,
        learn: impl Fn(&[MeasuredSet], Calibration) -> Result<M, TrainError>,
    ) -> Result<M, TrainError> {
        if lesson.held_back.is_empty() {
            return learn(lesson.train, Calibration::default());
        }
        let calibration = match learn(lesson.train, Calibration::default()) {
            Ok(model) => Calibration::of(&model, lesson.held_back),
            // Without any pair to learn from a part of the lesson says nothing; all of it may.
            Err(TrainError::NoPairs) => Calibration::default(),
            Err(error @ TrainError::Tensors(_)) => return Err(error),
        };
        learn(&lesson.all(), calibration)
    }

    fn of(model: &dyn Interference, held_back: &[MeasuredSet]) -> Calibration {
        let sets: Vec<_> = held_back.iter().map(|it| it.set.clone()).collect();
        let said = model.predict(&sets);
        let (mut square, mut count) = (PRIOR_WEIGHT, PRIOR_WEIGHT);
        for (said, measured) in said.iter().zip(held_back) {
            for (_, member, observed) in ran(std::slice::from_ref(measured)) {
                let apart = (said[member].slowdown / observed.slowdown.max(1.0)).ln();
                square += (apart / said[member].uncertainty.max(f64::MIN_POSITIVE)).powi(2);
                count += 1.0;
            }
        }
        Calibration((square / count).sqrt())
    }

    /// The same expectation with an honest variance.
    pub(crate) fn rescale(self, expected: LogSlowdown) -> LogSlowdown {
        LogSlowdown { variance: expected.variance * self.0 * self.0, ..expected }
    }
}
