//! A truth that knows every configuration alone, whoever asks and whatever they know.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_policy::interference::{
    ColocationEstimate, ColocationSet, GpuKind, Interference, SetMember, SoloMetrics, SoloMetricsTable,
};
use cohabit_types::Bytes;

/// What is true of configurations beside each other.
#[derive(Debug)]
pub(super) struct GroundTruth {
    pub(super) solos: Arc<SoloMetricsTable>,
    /// The memory of each kind of GPU.
    pub(super) capacities: BTreeMap<GpuKind, Bytes>,
    pub(super) by: Arc<dyn Interference>,
}

impl Interference for GroundTruth {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        let known: Vec<ColocationSet> = sets.iter().map(|set| self.known(set)).collect();
        let asked: Vec<ColocationSet> = known.iter().cloned().map(without_memory).collect();
        let said = self.by.predict(&asked);
        known.iter().zip(said).map(|(set, said)| self.with_room(set, said)).collect()
    }
}

impl GroundTruth {
    /// The set by what is true of its members alone. How they share does not matter: there is one truth.
    fn known(&self, set: &ColocationSet) -> ColocationSet {
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

    /// With memory, and whether it suffices on the devices of this cluster.
    fn with_room(&self, set: &ColocationSet, said: Vec<ColocationEstimate>) -> Vec<ColocationEstimate> {
        let held: f64 = set.members.iter().filter_map(|member| member.solo.memory).sum();
        let has_room = self.capacities.get(&set.gpu).is_none_or(|all| held <= all.0 as f64);
        let fits = |said: &ColocationEstimate| if has_room { said.fits } else { 0.0 };
        let told = |(said, member): (ColocationEstimate, &SetMember)| ColocationEstimate {
            memory: member.solo.memory,
            fits: fits(&said),
            ..said
        };
        said.into_iter().zip(&set.members).map(told).collect()
    }
}

/// Who is asked would count with the memory of a data sheet.
fn without_memory(mut set: ColocationSet) -> ColocationSet {
    for member in &mut set.members {
        member.solo = SoloMetrics { memory: None, ..std::mem::take(&mut member.solo) };
    }
    set
}
