//! The switches of the hybrid beside those of A-SRPT. Which of them are inferred is in the folder's README.

use crate::mapping::Toggle;

/// How jobs are put beside each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HybridOptions {
    /// Whether jobs share GPUs at all.
    pub(crate) sharing: Toggle,
    /// Whether those are separated that turn out to slow each other down more than they may.
    pub(crate) watchdog: Toggle,
    /// By how many standard deviations of its logarithm a predicted slowdown is taken for larger.
    pub(crate) caution: f64,
    /// What a neighbour's delay counts against the newcomer's own.
    pub(crate) harm_weight: f64,
    /// What an idle GPU costs while jobs wait for whole ones, in times of the newcomer alone.
    pub(crate) idle_price: f64,
}

impl Default for HybridOptions {
    fn default() -> HybridOptions {
        HybridOptions {
            sharing: Toggle::On,
            watchdog: Toggle::On,
            caution: 0.5,
            harm_weight: 1.0,
            idle_price: 1.0,
        }
    }
}
