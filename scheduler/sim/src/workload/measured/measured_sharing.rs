//! A predictor that is asked as if GPUs were shared in the way of the measurements.
//!
//! Simulated GPUs are shared in no particular way, and a model trained on one way would have to extrapolate.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, ContentionMetrics, GpuKind, Interference,
};
use cohabit_types::SharingStrategy;

/// Wraps a predictor.
#[derive(Debug)]
pub(super) struct MeasuredSharing {
    /// How the devices of each kind of GPU were shared, if the table tells.
    pub(super) sharing: BTreeMap<GpuKind, Option<SharingStrategy>>,
    pub(super) predictor: Arc<dyn Interference>,
}

impl Interference for MeasuredSharing {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        self.predictor.predict(&self.with_measured_sharing(sets))
    }

    fn contention(&self, sets: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
        self.predictor.contention(&self.with_measured_sharing(sets))
    }
}

impl MeasuredSharing {
    fn with_measured_sharing(&self, sets: &[ColocationSet]) -> Vec<ColocationSet> {
        sets.iter().map(|set| as_measured(set, &self.sharing)).collect()
    }
}

/// The set as if its device were shared in the way of the measurements.
pub(super) fn as_measured(
    set: &ColocationSet,
    measured: &BTreeMap<GpuKind, Option<SharingStrategy>>,
) -> ColocationSet {
    let sharing = measured.get(&set.gpu).copied().unwrap_or(set.sharing);
    ColocationSet { sharing, ..set.clone() }
}
