//! The trait of everything that predicts interference.

use std::sync::Arc;

use super::{ColocationEstimate, ColocationSet, ContentionMetrics};

/// Says what becomes of jobs that share a GPU.
///
/// For every implementation: a set of one is not slowed; the answer for a member does not depend on the order
/// of the others; whatever is unknown widens the uncertainty and is never an error.
pub trait Interference: std::fmt::Debug + Send + Sync {
    /// What becomes of the members of each set, in their order. Sets are asked for together because models
    /// answer a batch much faster than one by one.
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>>;

    /// How much every member of each set contends for what, completed where it was not measured. None where
    /// it does not look at that, or knows nothing of the kind.
    fn contention(&self, sets: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
        let _ = sets;
        None
    }

    /// Who predicts what this one only repeats, for it was measured: so that people can compare the two. None
    /// where it asks nobody else.
    fn base(&self) -> Option<Arc<dyn Interference>> {
        None
    }
}
