//! Calibrates uncertainties on sets that a model was not trained on.

use std::collections::BTreeMap;

use cohabit_policy::interference::{GpuKind, Interference, MeasuredSet};
use serde::{Deserialize, Serialize};

use super::log_slowdown::{LogSlowdown, ran};
use super::model::{TrainError, TrainingData};

/// The factors on standard deviations with which measurements deviate from predictions as much as stated.
///
/// Each GPU model has its own: measurements on one may be far noisier than on another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Calibration {
    /// One factor for all GPU models, as in models of earlier releases.
    Common(f64),
    /// A factor for each GPU model, and one for all others.
    ByGpu {
        /// For GPU models without held-back sets.
        common: f64,
        /// By GPU model.
        gpus: BTreeMap<GpuKind, f64>,
    },
}

/// The weight of the prior factor 1, in measurements.
const PRIOR_WEIGHT: f64 = 10.0;
/// The weight of the common factor in that of a GPU model, in measurements.
const COMMON_WEIGHT: f64 = 20.0;
/// Standard deviations, and the part of a normal distribution within them, that the factor is right for.
const WITHIN: (f64, f64) = (2.0, 0.954);

impl Default for Calibration {
    fn default() -> Calibration {
        Calibration::Common(1.0)
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
        let mut by_gpu: BTreeMap<GpuKind, Vec<f64>> = BTreeMap::new();
        for (predicted, measured) in model.predict(&sets).iter().zip(held_back) {
            for (set, member, observed) in ran(std::slice::from_ref(measured)) {
                let apart = (predicted[member].slowdown / observed.slowdown.max(1.0)).ln().abs();
                let deviations = apart / predicted[member].uncertainty.max(f64::MIN_POSITIVE);
                by_gpu.entry(set.gpu.clone()).or_default().push(deviations);
            }
        }
        let common = shrunk(by_gpu.values().flatten().copied().collect(), 1.0, PRIOR_WEIGHT);
        let of_gpu = |(gpu, deviations)| (gpu, shrunk(deviations, common, COMMON_WEIGHT));
        Calibration::ByGpu { common, gpus: by_gpu.into_iter().map(of_gpu).collect() }
    }

    /// The prediction on a GPU with a calibrated variance.
    pub(crate) fn rescale(&self, gpu: &GpuKind, expected: LogSlowdown) -> LogSlowdown {
        let factor = match self {
            Calibration::Common(factor) => *factor,
            Calibration::ByGpu { common, gpus } => gpus.get(gpu).copied().unwrap_or(*common),
        };
        LogSlowdown { variance: expected.variance * factor * factor, ..expected }
    }
}

/// The factor for these errors in multiples of the stated uncertainty, drawn to `prior` as by `weight` more
/// measurements. Errors have longer tails than the normal distribution, so no factor is right for one and for
/// two deviations. It is right for two: what is rarely exceeded matters to a policy that refuses what it
/// doubts.
fn shrunk(mut deviations: Vec<f64>, prior: f64, weight: f64) -> f64 {
    if deviations.is_empty() {
        return prior;
    }
    deviations.sort_unstable_by(f64::total_cmp);
    let count = deviations.len() as f64;
    let (sigmas, part) = WITHIN;
    let reached = deviations[((part * count) as usize).min(deviations.len() - 1)];
    let own = (reached / sigmas).max(LEAST_FACTOR).ln();
    ((own * count + prior.ln() * weight) / (count + weight)).exp()
}

/// Errors of exactly 0 do not make a model certain.
const LEAST_FACTOR: f64 = 0.05;

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::random::RandomExt;

    #[test]
    fn normal_errors_are_scaled_to_their_deviation_and_few_to_the_prior() {
        let normal = |count: usize| -> Vec<f64> {
            let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(7);
            (0..count).map(|_| (0.5 * random.normal()).abs()).collect()
        };
        assert!((shrunk(normal(20_000), 1.0, PRIOR_WEIGHT) - 0.5).abs() < 0.01);
        let [alone, few] = [0.0, 10.0].map(|weight| shrunk(normal(10), 1.0, weight));
        assert!((few - alone.sqrt()).abs() < 1e-12, "half way to the prior: {alone} {few}");
        assert_eq!(shrunk(Vec::new(), 0.7, COMMON_WEIGHT), 0.7);
    }

    #[test]
    fn a_factor_of_an_earlier_release_is_read() {
        let read: Calibration = serde_json::from_str("0.75").unwrap();
        assert_eq!(read, Calibration::Common(0.75));
        let by_gpu = Calibration::ByGpu { common: 0.5, gpus: [(GpuKind::named("v100"), 0.25)].into() };
        let text = serde_json::to_string(&by_gpu).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), by_gpu);
        let variance =
            |gpu| by_gpu.rescale(&GpuKind::named(gpu), LogSlowdown { mean: 0.0, variance: 1.0 }).variance;
        assert_eq!([variance("v100"), variance("k80")], [0.0625, 0.25]);
    }
}
