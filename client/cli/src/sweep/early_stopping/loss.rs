//! Values of a metric, turned so that smaller ones are better. NaN is worse than all numbers.

use cohabit_client::types::SweepGoal;

/// The smaller the better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Loss(pub(super) f64);

impl Loss {
    pub(super) fn new(value: f64, goal: SweepGoal) -> Loss {
        match (value.is_nan(), goal) {
            (true, _) => Loss(f64::INFINITY),
            (false, SweepGoal::Min) => Loss(value),
            (false, SweepGoal::Max) => Loss(-value),
        }
    }

    /// As the member reported it.
    pub(super) fn value(self, goal: SweepGoal) -> f64 {
        match goal {
            SweepGoal::Min => self.0,
            SweepGoal::Max => -self.0,
        }
    }
}
