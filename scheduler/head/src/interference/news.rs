//! Whether what is known has changed enough to tell a policy: it forgets its plans' predictions each time.

use std::collections::BTreeMap;

use cohabit_policy::interference::{
    Configuration, GpuKind, ObservedSet, SetMember, SetOutcome, SoloMetricsTable,
};
use cohabit_types::SharingStrategy;

/// Figures that differ by less, as a part of themselves, are the same.
const RELATIVE_TOLERANCE: f64 = 0.02;

/// The figures that a policy was told.
#[derive(Debug, Default)]
pub(super) struct InterferenceDigest(BTreeMap<Key, Vec<f64>>);

type Key = (GpuKind, Option<&'static str>, Vec<Configuration>);

impl InterferenceDigest {
    /// Slowdowns of sets, and what configurations do alone.
    pub(super) fn of(sets: &[ObservedSet], solos: &SoloMetricsTable) -> InterferenceDigest {
        let together = sets.iter().map(|lived| {
            let set = &lived.measured.set;
            let sharing = set.sharing.map(SharingStrategy::word);
            let members = set.members.iter().map(SetMember::configuration).collect();
            ((set.gpu.clone(), sharing, members), slowdowns(&lived.measured.outcome))
        });
        let alone = solos.iter().map(|(gpu, configuration, solo)| {
            let figures = [solo.rate, solo.memory, solo.utilisation].map(|it| it.unwrap_or_default());
            ((gpu.clone(), None, vec![configuration.clone()]), figures.to_vec())
        });
        InterferenceDigest(together.chain(alone).collect())
    }

    /// Whether these are about the same as those.
    pub(super) fn is_like(&self, other: &InterferenceDigest) -> bool {
        let same_keys = self.0.len() == other.0.len() && self.0.keys().eq(other.0.keys());
        same_keys && self.0.values().zip(other.0.values()).all(|(one, other)| are_alike(one, other))
    }
}

fn slowdowns(outcome: &SetOutcome) -> Vec<f64> {
    match outcome {
        SetOutcome::Ran(observed) => observed.iter().map(|it| it.slowdown).collect(),
        SetOutcome::DidNotFit => Vec::new(),
    }
}

fn are_alike(one: &[f64], other: &[f64]) -> bool {
    let alike =
        |(one, other): (&f64, &f64)| (one - other).abs() <= RELATIVE_TOLERANCE * one.abs().max(other.abs());
    one.len() == other.len() && one.iter().zip(other).all(alike)
}
