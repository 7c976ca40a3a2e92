//! A predictor that is asked about GPUs which share as those did that were measured.
//!
//! Made-up GPUs share in no particular way, and a model that learned of one way would have to guess about
//! another.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, ContentionMetrics, GpuKind, Interference,
};
use cohabit_types::SharingStrategy;

/// What a predictor says of them.
#[derive(Debug)]
pub(super) struct MeasuredSharing {
    /// How each kind of GPU was shared, where the table tells.
    pub(super) sharing: BTreeMap<GpuKind, Option<SharingStrategy>>,
    pub(super) predictor: Arc<dyn Interference>,
}

impl Interference for MeasuredSharing {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        self.predictor.predict(&self.asked(sets))
    }

    fn contention(&self, sets: &[ColocationSet]) -> Option<Vec<Vec<ContentionMetrics>>> {
        self.predictor.contention(&self.asked(sets))
    }
}

impl MeasuredSharing {
    fn asked(&self, sets: &[ColocationSet]) -> Vec<ColocationSet> {
        let as_measured = |set: &ColocationSet| {
            let sharing = self.sharing.get(&set.gpu).copied().unwrap_or(set.sharing);
            ColocationSet { sharing, ..set.clone() }
        };
        sets.iter().map(as_measured).collect()
    }
}
