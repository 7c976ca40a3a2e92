//! The trait of everything that predicts interference.

use std::sync::Arc;

use super::{ColocationEstimate, ColocationSet, ContentionMetrics};

/// Predicts the slowdowns of jobs that share a GPU.
///
/// For every implementation: a set of one is not slowed down; the answer for a member does not depend on the
/// order of the others; whatever is unknown widens the uncertainty and is never an error.
pub trait Interference: std::fmt::Debug + Send + Sync {
    /// The estimates for the members of each set, in their order. Sets are asked about together because
    /// models answer a batch much faster than one by one.
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>>;

    /// The contention metrics of each member of each set, completed where they were not measured; `None` if
    /// the predictor has no such metrics.
    fn contention(&self, sets: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
        let _ = sets;
        None
    }

    /// The predictor behind the measurements that this one repeats, so that people can compare the two;
    /// `None` if there is none.
    fn base(&self) -> Option<Arc<dyn Interference>> {
        None
    }
}
