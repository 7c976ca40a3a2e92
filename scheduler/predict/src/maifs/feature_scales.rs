//! The scales of the features: affine maps that are fixed before training and stored with the weights
//! (section 3).

use std::sync::Arc;

use cohabit_policy::maifs::{
    INTERFERENCE_FEATURES, JointObservation, PAIR_FEATURES, SERVER_FEATURES, TASK_FEATURES,
};
use serde::{Deserialize, Serialize};

/// Scaled features are clipped to this absolute value: a value far from all training data is only known to
/// be far.
const MAX_SCALED: f32 = 6.0;
/// A feature with a smaller deviation counts as constant.
const LEAST_DEVIATION: f64 = 1e-6;

/// The scales of all features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeatureScales {
    pub(super) servers: Vec<FeatureScale>,
    pub(super) tasks: Vec<FeatureScale>,
    pub(super) pairs: Vec<FeatureScale>,
}

/// `(x - mean) * factor`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct FeatureScale {
    mean: f32,
    factor: f32,
}

impl FeatureScale {
    pub(super) fn scaled(self, value: f32) -> f32 {
        ((value - self.mean) * self.factor).clamp(-MAX_SCALED, MAX_SCALED)
    }

    fn is_finite(self) -> bool {
        self.mean.is_finite() && self.factor.is_finite()
    }
}

impl FeatureScales {
    /// Scales that leave the features as they are.
    #[must_use]
    pub fn identity() -> FeatureScales {
        let scales = |count| vec![FeatureScale { mean: 0.0, factor: 1.0 }; count];
        FeatureScales {
            servers: scales(SERVER_FEATURES),
            tasks: scales(TASK_FEATURES),
            pairs: scales(PAIR_FEATURES),
        }
    }

    /// Scales to a mean of 0 and a standard deviation of 1 over these observations, without padding. A
    /// feature that is constant in all of them is only shifted.
    #[must_use]
    pub fn fit(observations: &[Arc<JointObservation>]) -> FeatureScales {
        let mut servers = vec![Moments::default(); SERVER_FEATURES];
        let mut tasks = vec![Moments::default(); TASK_FEATURES];
        let mut pairs = vec![Moments::default(); PAIR_FEATURES];
        for observation in observations {
            let (has_node, has_job) = (observation.has_node(), observation.has_job());
            add(&mut servers, observation.servers(), |row| has_node[row]);
            add(&mut tasks, observation.tasks(), |row| has_job[row]);
            add(&mut pairs, observation.pairs(), |row| {
                has_node[row / has_job.len()] && has_job[row % has_job.len()]
            });
        }
        let scales = |moments: Vec<Moments>| moments.iter().map(Moments::scale).collect();
        FeatureScales { servers: scales(servers), tasks: scales(tasks), pairs: scales(pairs) }
    }

    /// The same scales for agents that see nothing of interference: these features are always 0.
    #[must_use]
    pub fn without_interference(mut self) -> FeatureScales {
        let (servers, tasks, pairs) = INTERFERENCE_FEATURES;
        let rows = [(&mut self.servers, servers), (&mut self.tasks, tasks), (&mut self.pairs, pairs)];
        for (scales, places) in rows {
            places.iter().for_each(|place| scales[*place].factor = 0.0);
        }
        self
    }

    /// Whether they are of this program's features, and all finite.
    pub(super) fn are_usable(&self) -> bool {
        let lengths = [self.servers.len(), self.tasks.len(), self.pairs.len()];
        let mut all = self.servers.iter().chain(&self.tasks).chain(&self.pairs);
        lengths == [SERVER_FEATURES, TASK_FEATURES, PAIR_FEATURES] && all.all(|scale| scale.is_finite())
    }
}

/// Scales rows of features.
pub(super) fn scale_rows(scales: &[FeatureScale], rows: &[f32]) -> Vec<f32> {
    rows.iter().zip(scales.iter().cycle()).map(|(value, scale)| scale.scaled(*value)).collect()
}

/// Sums of a feature.
#[derive(Debug, Default, Clone)]
struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn scale(&self) -> FeatureScale {
        let count = self.count.max(1.0);
        let mean = self.sum / count;
        let deviation = (self.squares / count - mean * mean).max(0.0).sqrt();
        let factor = if deviation > LEAST_DEVIATION { 1.0 / deviation } else { 1.0 };
        FeatureScale { mean: mean as f32, factor: factor as f32 }
    }
}

fn add(moments: &mut [Moments], rows: &[f32], is_counted: impl Fn(usize) -> bool) {
    for (_, row) in rows.chunks(moments.len()).enumerate().filter(|(at, _)| is_counted(*at)) {
        for (moments, value) in moments.iter_mut().zip(row) {
            let value = f64::from(*value);
            moments.count += 1.0;
            moments.sum += value;
            moments.squares += value * value;
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_policy::maifs::ObservationShape;

    use super::*;

    #[test]
    fn features_get_mean_0_and_deviation_1_without_padding() {
        let mut observation = JointObservation::new(ObservationShape { nodes: 3, jobs: 1, levels: 1 });
        for (node, value) in [(0, 2.0), (2, 6.0)] {
            let mut features = [7.0; SERVER_FEATURES];
            features[0] = value;
            observation.set_server(node, &features);
        }
        let scales = FeatureScales::fit(&[Arc::new(observation.clone())]);
        let scaled = scale_rows(&scales.servers, observation.servers());
        assert_eq!((scaled[0], scaled[2 * SERVER_FEATURES]), (-1.0, 1.0));
        assert_eq!(scaled[1], 0.0, "a constant feature is shifted");
        assert_eq!(scales.servers[0].scaled(1e9), MAX_SCALED);
        assert!(scales.are_usable() && FeatureScales::identity().are_usable());
    }

    #[test]
    fn interference_can_be_hidden() {
        let hidden = FeatureScales::identity().without_interference();
        let seen = |scales: &[FeatureScale]| -> Vec<usize> {
            (0..scales.len()).filter(|place| scales[*place].scaled(1.0) != 0.0).collect()
        };
        assert_eq!((seen(&hidden.pairs), seen(&hidden.tasks).len()), (vec![0, 3], TASK_FEATURES - 1));
        assert_eq!(seen(&hidden.servers).len(), SERVER_FEATURES - 1);
    }
}
