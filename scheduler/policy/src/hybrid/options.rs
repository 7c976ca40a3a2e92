//! The options of the hybrid in addition to those of A-SRPT. The directory's README says which of them are
//! inferred.

use crate::mapping::Toggle;

/// How jobs share GPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HybridOptions {
    /// Whether jobs share GPUs at all.
    pub(crate) sharing: Toggle,
    /// Whether jobs whose measured slowdown is too large are separated.
    pub(crate) watchdog: Toggle,
    /// By how many standard deviations of its logarithm a predicted slowdown is increased.
    pub(crate) caution: f64,
    /// The weight of a neighbor's delay against the newcomer's own.
    pub(crate) harm_weight: f64,
    /// The cost of an idle GPU while jobs wait for whole ones, in units of the newcomer's time alone.
    pub(crate) idle_price: f64,
    /// A job is not expected to be done later than without sharing by more than this part of that time.
    pub(crate) later: f64,
    /// The weight of what jobs that wait gain by work done together.
    pub(crate) queue_weight: f64,
}

impl Default for HybridOptions {
    fn default() -> HybridOptions {
        HybridOptions {
            sharing: Toggle::On,
            watchdog: Toggle::On,
            caution: 0.5,
            harm_weight: 1.0,
            idle_price: 1.0,
            later: 0.3,
            queue_weight: 1.0,
        }
    }
}
