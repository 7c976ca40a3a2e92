//! Slowdowns from measured rates.

/// What is wrong with a rate whose ratio to the rate alone is not a number that can be computed with.
pub(super) const OUT_OF_RANGE: &str =
    "it is out of range beside the rate alone: their ratio is no finite number above 0";

/// The ratio of the rate alone to that beside others, if it is a finite number above 0.
pub(super) fn slowdown_of(alone: f64, together: f64) -> Option<f64> {
    Some(alone / together).filter(|ratio| ratio.is_normal())
}
