//! What one configuration did in one set: means in which old samples decay.

use cohabit_types::Time;

use crate::interference::{ObservedSample, SoloMetrics, UNKNOWN_UNCERTAINTY};

/// Statistics of the samples of one configuration in one set.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct ConfigurationStats {
    /// Of the logarithm of the seconds of a step, because slowdowns multiply.
    step: DecayingMean,
    /// Of the device's utilization.
    utilization: DecayingMean,
    /// The most memory that it ever held, in bytes.
    memory: Option<f64>,
    /// When the latest sample ended.
    last: Time,
}

/// A mean over time with its variance, in which old samples decay as new ones come.
#[derive(Debug, Default, Clone, PartialEq)]
struct DecayingMean {
    /// The seconds that count.
    seconds: f64,
    mean: f64,
    /// Sum of squared deviations from the mean, weighted by seconds.
    spread: f64,
}

/// After so many seconds of new samples an old one counts half.
const HALF_LIFE: f64 = 1_800.0;

/// The statistics start as if so many seconds of anything had been seen: a short sample is no certainty.
const PRIOR_SECONDS: f64 = 2.0;

/// The least uncertainty of a measured slowdown.
const MIN_UNCERTAINTY: f64 = 0.03;

impl ConfigurationStats {
    pub(super) fn note(&mut self, sample: &ObservedSample) {
        let seconds = sample.length.as_secs_f64();
        self.step.add(-sample.rate.ln(), seconds);
        if let Some(utilization) = sample.utilization.filter(|it| it.is_finite()) {
            self.utilization.add(utilization.clamp(0.0, 1.0), seconds);
        }
        self.memory = self.memory.into_iter().chain(sample.memory).reduce(f64::max);
        self.last = self.last.max(sample.until);
    }

    /// Whether it ran at a later time.
    pub(super) fn ran_after(&self, time: Time) -> bool {
        self.last > time
    }

    /// The slowdown against the same configuration alone, as a factor of at least 1, and the standard
    /// deviation of its logarithm.
    pub(super) fn beside(&self, alone: &ConfigurationStats) -> (f64, f64) {
        let slowdown = (self.step.mean - alone.step.mean).exp().max(1.0);
        let uncertainty = (self.step.variance() + alone.step.variance()).sqrt();
        (slowdown, uncertainty.clamp(MIN_UNCERTAINTY, UNKNOWN_UNCERTAINTY))
    }

    /// The most memory that it held, in bytes.
    pub(super) const fn memory(&self) -> Option<f64> {
        self.memory
    }

    /// As the measurement of a configuration alone; what was not seen here is taken from `elsewhere`.
    pub(super) fn solo(&self, elsewhere: &SoloMetrics) -> SoloMetrics {
        let utilization = (self.utilization.seconds > 0.0).then_some(self.utilization.mean);
        SoloMetrics {
            rate: Some((-self.step.mean).exp()),
            memory: self.memory.or(elsewhere.memory),
            utilization: utilization.or(elsewhere.utilization),
            others: elsewhere.others.clone(),
        }
    }
}

impl DecayingMean {
    /// A sample weighs the same in one piece as in many, so its beginning decays within it.
    fn add(&mut self, value: f64, seconds: f64) {
        let stays = 0.5_f64.powf(seconds / HALF_LIFE);
        let weight = (1.0 - stays) * HALF_LIFE / std::f64::consts::LN_2;
        let off = value - self.mean;
        self.seconds = self.seconds * stays + weight;
        self.mean += off * weight / self.seconds;
        self.spread = self.spread * stays + weight * off * (value - self.mean);
    }

    fn variance(&self) -> f64 {
        let prior = PRIOR_SECONDS * UNKNOWN_UNCERTAINTY.powi(2);
        (self.spread + prior) / (self.seconds + PRIOR_SECONDS)
    }
}
