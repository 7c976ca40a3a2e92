//! Slowdowns of pairs that were not measured.
//!
//! Two numbers for each configuration explain most of the measurements: its sensitivity, how much it suffers
//! from others, and its pressure, how much others suffer from it. The logarithm of a slowdown is modelled as
//! the sum of both and a common mean, fitted by least squares with a small prior weight on 0 for rarely seen
//! configurations.

use std::collections::BTreeMap;

use cohabit_policy::interference::Configuration;

/// The slowdown of one configuration beside another.
pub(super) struct PairSlowdown<'a> {
    pub(super) job: &'a Configuration,
    pub(super) partner: &'a Configuration,
    pub(super) slowdown: f64,
}

/// Additive effects on the logarithm of a slowdown.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct AdditiveEffects {
    mean: f64,
    sensitivity: BTreeMap<Configuration, f64>,
    pressure: BTreeMap<Configuration, f64>,
}

/// The weight of the prior, in observations of the mean.
const WEIGHT_OF_THE_MEAN: f64 = 0.5;
/// Rounds of the alternating fit; far more than it needs to converge.
const ROUNDS: usize = 60;

impl AdditiveEffects {
    pub(super) fn of(observed: &[PairSlowdown<'_>]) -> AdditiveEffects {
        let logs: Vec<f64> = observed.iter().map(|it| it.slowdown.max(1.0).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        let mut effects = AdditiveEffects { mean, ..AdditiveEffects::default() };
        for _ in 0..ROUNDS {
            let left = observed
                .iter()
                .zip(&logs)
                .map(|(it, log)| (it.job, log - mean - effects.pressure_of(it.partner)));
            effects.sensitivity = means(left);
            let left = observed
                .iter()
                .zip(&logs)
                .map(|(it, log)| (it.partner, log - mean - effects.sensitivity_of(it.job)));
            effects.pressure = means(left);
        }
        effects
    }

    /// The slowdown of `job` beside `partner`.
    pub(super) fn slowdown(&self, job: &Configuration, partner: &Configuration) -> f64 {
        (self.mean + self.sensitivity_of(job) + self.pressure_of(partner)).exp().max(1.0)
    }

    fn sensitivity_of(&self, job: &Configuration) -> f64 {
        self.sensitivity.get(job).copied().unwrap_or_default()
    }

    fn pressure_of(&self, job: &Configuration) -> f64 {
        self.pressure.get(job).copied().unwrap_or_default()
    }
}

fn means<'a>(values: impl Iterator<Item = (&'a Configuration, f64)>) -> BTreeMap<Configuration, f64> {
    let mut sums: BTreeMap<&Configuration, (f64, f64)> = BTreeMap::new();
    for (job, value) in values {
        let (sum, count) = sums.entry(job).or_insert((0.0, WEIGHT_OF_THE_MEAN));
        *sum += value;
        *count += 1.0;
    }
    sums.into_iter().map(|(job, (sum, count))| (job.clone(), sum / count)).collect()
}
