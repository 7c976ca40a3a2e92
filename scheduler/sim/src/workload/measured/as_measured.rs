//! A predictor that is asked about GPUs which share as those did that were measured.
//!
//! Made-up GPUs share in no particular way, and a model that learned of one way would have to guess about
//! another.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_policy::interference::{CoLocation, Colocated, Contention, GpuKind, Interference};
use cohabit_types::StretchSharing;

/// What a predictor says of them.
#[derive(Debug)]
pub(super) struct AsMeasured {
    /// How each kind of GPU was shared, where the table tells.
    pub(super) sharing: BTreeMap<GpuKind, Option<StretchSharing>>,
    pub(super) predictor: Arc<dyn Interference>,
}

impl Interference for AsMeasured {
    fn predict(&self, sets: &[CoLocation]) -> Vec<Vec<Colocated>> {
        self.predictor.predict(&self.asked(sets))
    }

    fn contention(&self, sets: &[CoLocation]) -> Option<Vec<Vec<Contention>>> {
        self.predictor.contention(&self.asked(sets))
    }
}

impl AsMeasured {
    fn asked(&self, sets: &[CoLocation]) -> Vec<CoLocation> {
        let as_measured = |set: &CoLocation| {
            let sharing = self.sharing.get(&set.gpu).copied().unwrap_or(set.sharing);
            CoLocation { sharing, ..set.clone() }
        };
        sets.iter().map(as_measured).collect()
    }
}
