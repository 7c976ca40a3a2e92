//! How much processes on one device slow each other down, by a formula: the truth of the simulated hardware.
//!
//! The default model has two parameters, fitted to published measurements of two training jobs on one GPU:
//! part of the device is divided fairly (a light job keeps what it needs), and part of the slowdown is the
//! same for all.

/// A model of slowdowns.
pub trait SlowdownModel: std::fmt::Debug + Send + Sync {
    /// The slowdown of each process of a set, as a factor of at least 1, from the fraction of time for which
    /// each keeps the device busy alone.
    fn slowdowns(&self, busy: &[f64]) -> Vec<f64>;
}

/// Max-min fair sharing of the device, mixed with a slowdown that is the same for all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MaxMinSharing {
    /// The weight of the common slowdown, 0 to 1.
    pub common: f64,
    /// The largest busy fraction that a device reaches.
    pub capacity: f64,
}

impl Default for MaxMinSharing {
    fn default() -> MaxMinSharing {
        MaxMinSharing { common: 0.35, capacity: 0.95 }
    }
}

impl SlowdownModel for MaxMinSharing {
    fn slowdowns(&self, busy: &[f64]) -> Vec<f64> {
        let granted = max_min_fair(busy, self.capacity);
        let crowd = (busy.iter().sum::<f64>() / self.capacity).max(1.0);
        let slowdown = |(busy, granted): (&f64, &f64)| {
            let own = if *granted > 0.0 { (busy / granted).max(1.0) } else { 1.0 };
            (1.0 - self.common) * own + self.common * crowd
        };
        busy.iter().zip(&granted).map(slowdown).collect()
    }
}

/// Water filling: the least demanding are served first, each with at most an equal part of what is left.
fn max_min_fair(wanted: &[f64], capacity: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut granted = vec![0.0; wanted.len()];
    let mut left = capacity;
    for (served, who) in order.iter().enumerate() {
        let equal_part = left / (wanted.len() - served) as f64;
        granted[*who] = wanted[*who].min(equal_part);
        left -= granted[*who];
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn slows(busy: &[f64], expected: &[f64]) {
        let slowdowns = MaxMinSharing::default().slowdowns(busy);
        let close = slowdowns.iter().zip(expected).all(|(is, should)| (is - should).abs() < 6e-4);
        assert!(close && slowdowns.len() == expected.len(), "{slowdowns:?} instead of {expected:?}");
    }

    #[test]
    fn the_published_points_are_reproduced() {
        slows(&[0.30, 0.94], &[1.107, 1.397]);
        slows(&[0.95, 0.94], &[1.996, 1.983]);
        slows(&[0.8, 0.5, 0.2], &[1.939, 1.419, 1.203]);
    }

    #[test]
    fn jobs_that_fit_beside_each_other_are_not_slowed_down() {
        slows(&[0.2, 0.2], &[1.0, 1.0]);
        slows(&[0.3, 0.3, 0.3], &[1.0, 1.0, 1.0]);
        slows(&[0.0], &[1.0]);
        slows(&[], &[]);
    }
}
