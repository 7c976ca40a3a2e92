//! The ground truth of a simulated cluster: uses the measured values of every configuration alone, whatever
//! the caller knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, GpuKind, Interference, SetMember, SoloMetrics, SoloMetricsTable,
};
use cohabit_types::Bytes;

/// The true effects of co-located configurations.
#[derive(Debug)]
pub(super) struct GroundTruth {
    pub(super) solos: Arc<SoloMetricsTable>,
    /// Memory of each kind of GPU.
    pub(super) capacities: BTreeMap<GpuKind, Bytes>,
    pub(super) by: Arc<dyn Interference>,
}

impl Interference for GroundTruth {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let known: Vec<ColocationSet> = sets.iter().map(|set| self.with_solo_values(set)).collect();
        let queries: Vec<ColocationSet> = known.iter().cloned().map(without_memory).collect();
        let estimates = self.by.predict(&queries);
        known.iter().zip(estimates).map(|(set, estimates)| self.with_memory_fit(set, estimates)).collect()
    }
}

impl GroundTruth {
    /// The set with the measured values of its members alone. The way of sharing does not matter: there is
    /// one truth.
    fn with_solo_values(&self, set: &ColocationSet) -> ColocationSet {
        let members = set.members.iter().map(|member| self.member(&set.gpu, member));
        ColocationSet { gpu: set.gpu.clone(), sharing: None, members: members.collect() }
    }

    fn member(&self, gpu: &GpuKind, member: &SetMember) -> SetMember {
        match self.solos.find(gpu, &member.configuration()) {
            Some((known, solo)) => {
                SetMember { precision: known.precision.clone(), solo: solo.clone(), ..member.clone() }
            }
            None => member.clone(),
        }
    }

    /// Adds memory, and whether it is enough on the devices of this cluster.
    fn with_memory_fit(
        &self,
        set: &ColocationSet,
        estimates: Vec<ColocationEstimate>,
    ) -> Vec<ColocationEstimate> {
        let held: f64 = set.members.iter().filter_map(|member| member.solo.memory).sum();
        let has_memory = self.capacities.get(&set.gpu).is_none_or(|all| held <= all.0 as f64);
        let fits = |estimates: &ColocationEstimate| if has_memory { estimates.fits } else { 0.0 };
        let completed = |(estimates, member): (ColocationEstimate, &SetMember)| ColocationEstimate {
            memory: member.solo.memory,
            fits: fits(&estimates),
            ..estimates
        };
        estimates.into_iter().zip(&set.members).map(completed).collect()
    }
}

/// Removes the memory, with which the model would otherwise check the nominal memory of the GPU.
fn without_memory(mut set: ColocationSet) -> ColocationSet {
    for member in &mut set.members {
        member.solo = SoloMetrics { memory: None, ..std::mem::take(&mut member.solo) };
    }
    set
}
