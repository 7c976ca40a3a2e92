//! Co-location: the predicted and measured slowdown of jobs that share a device, and dry runs.

use serde::{Deserialize, Serialize};

use crate::{DeviceId, JobId, JobPrediction, Share, Slowdown};

/// A predicted slowdown factor: the time of a step beside other jobs, divided by its time alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PredictedSlowdown {
    /// The expected value.
    pub expected: Slowdown,
    /// One standard deviation below.
    pub least: Slowdown,
    /// One standard deviation above.
    pub most: Slowdown,
}

/// The slowdown of a job beside its neighbors on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColocationSlowdown {
    /// Which job.
    pub job: JobId,
    /// Its neighbors.
    pub beside: Vec<JobId>,
    /// The predicted slowdown.
    pub predicted: PredictedSlowdown,
    /// The slowdown that was measured of such jobs together, where it was.
    pub measured: Option<Slowdown>,
}

/// Where a job would run if it were submitted now, and its forecast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DryRun {
    /// Where it would go now; none where it would have to wait.
    pub place: Option<DryRunPlacement>,
    /// Why it would start at once, or why it would wait.
    pub reason: String,
    /// What is predicted of it there.
    pub predicted: JobPrediction,
    /// Its own slowdown beside its neighbors; none where it would have none.
    pub slowdown: Option<ColocationSlowdown>,
    /// Those neighbors.
    pub neighbors: Vec<DryRunNeighbor>,
}

/// A placement by the names that people know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRunPlacement {
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// All devices.
    pub devices: Vec<DeviceId>,
    /// How much of each.
    pub share: Share,
}

/// A running job that the new job would share a device with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRunNeighbor {
    /// Its name.
    pub name: String,
    /// Its slowdown now.
    pub now: Slowdown,
    /// Its slowdown beside the new job.
    pub then: ColocationSlowdown,
}

impl PredictedSlowdown {
    /// The slowdown `factor`, the logarithm of which has this standard deviation.
    #[must_use]
    pub fn new(factor: f64, deviation: f64) -> PredictedSlowdown {
        let (factor, spread) = (factor.max(1.0), deviation.max(0.0).exp());
        PredictedSlowdown {
            expected: factor.into(),
            least: (factor / spread).into(),
            most: (factor * spread).into(),
        }
    }
}

impl ColocationSlowdown {
    /// The measured slowdown, or else the predicted one.
    #[must_use]
    pub fn slowdown(&self) -> Slowdown {
        self.measured.unwrap_or(self.predicted.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_between_its_bounds_and_at_least_1() {
        let bounds = |factor, deviation| {
            let PredictedSlowdown { expected, least, most } = PredictedSlowdown::new(factor, deviation);
            [least, expected, most].map(|it| it.0)
        };
        assert_eq!(bounds(2.0, 0.0), [2_000; 3]);
        assert_eq!(bounds(2.0, 0.1), [1_810, 2_000, 2_210]);
        assert_eq!(bounds(1.1, 0.47), [1_000, 1_100, 1_760]);
        assert_eq!(bounds(f64::NAN, f64::NAN), [1_000; 3]);
    }
}
