//! The scale on which effects of jobs add up.
//!
//! The logarithm of `(slowdown - offset) / (1 - offset)`: with an offset of 0 the logarithm of the slowdown,
//! with an offset near 1 that of the time lost. Pressure adds less to a job that is hardly slowed than the
//! first says, and more than the second; measured pairs are best between the two.

use serde::{Deserialize, Serialize};

use super::log_slowdown::LogSlowdown;

/// A scale of slowdowns, on which a slowdown of 1 is 0.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct SlowdownScale {
    offset: f64,
}

impl SlowdownScale {
    /// A scale with an offset from 0 to less than 1.
    pub(super) const fn with_offset(offset: f64) -> SlowdownScale {
        SlowdownScale { offset }
    }

    /// The value of a slowdown of at least 1.
    pub(super) fn value(self, slowdown: f64) -> f64 {
        ((slowdown - self.offset) / (1.0 - self.offset)).ln()
    }

    /// A prediction on this scale, as one of the logarithm of the slowdown.
    pub(super) fn ln_slowdown(self, value: f64, variance: f64) -> LogSlowdown {
        let grown = (1.0 - self.offset) * value.exp();
        let slowdown = self.offset + grown;
        // How fast the logarithm of the slowdown grows with the value.
        let slope = grown / slowdown;
        LogSlowdown { mean: slowdown.ln(), variance: variance * slope * slope }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_slowdowns_and_back() {
        for offset in [0.0, 0.5, 0.9] {
            let scale = SlowdownScale::with_offset(offset);
            assert_eq!(scale.value(1.0), 0.0);
            for slowdown in [0.95, 1.0, 1.3, 5.0] {
                let there = scale.value(slowdown);
                assert!((scale.ln_slowdown(there, 0.0).mean - f64::ln(slowdown)).abs() < 1e-12);
                let step = 1e-6;
                let moved = scale.ln_slowdown(there + step, 0.0).mean - scale.ln_slowdown(there, 0.0).mean;
                let spread = scale.ln_slowdown(there, 1.0).variance.sqrt();
                assert!((moved / step - spread).abs() < 1e-5, "{offset} {slowdown}: {moved} {spread}");
            }
        }
    }
}
