//! Decides whether the observations have changed enough to update the policy, which drops its cached
//! predictions on every update.

use std::collections::BTreeMap;

use cohabit_policy::interference::{
    Configuration, GpuKind, ObservedSet, SetMember, SetOutcome, SoloMetricsTable,
};
use cohabit_types::SharingStrategy;

/// Figures with a smaller relative difference count as equal.
const RELATIVE_TOLERANCE: f64 = 0.02;

/// The figures of an update.
#[derive(Debug, Default)]
pub(super) struct InterferenceDigest(BTreeMap<Key, Vec<f64>>);

type Key = (GpuKind, Option<&'static str>, Vec<Configuration>);

impl InterferenceDigest {
    /// The slowdowns of these sets, and the figures of configurations that run alone.
    pub(super) fn of(sets: &[ObservedSet], solos: &SoloMetricsTable) -> InterferenceDigest {
        let together = sets.iter().map(|observed| {
            let set = &observed.measured.set;
            let sharing = set.sharing.map(SharingStrategy::word);
            let members = set.members.iter().map(SetMember::configuration).collect();
            ((set.gpu.clone(), sharing, members), slowdowns(&observed.measured.outcome))
        });
        let alone = solos.iter().map(|(gpu, configuration, solo)| {
            let figures = [solo.rate, solo.memory, solo.utilization].map(|it| it.unwrap_or_default());
            ((gpu.clone(), None, vec![configuration.clone()]), figures.to_vec())
        });
        InterferenceDigest(together.chain(alone).collect())
    }

    /// Whether both have the same keys and about the same figures.
    pub(super) fn is_close_to(&self, other: &InterferenceDigest) -> bool {
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
