//! The measurements on one GPU model, with missing pairs filled in.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_policy::interference::{
    ColocationSet, Configuration, GpuKind, MeasuredMember, MeasuredSet, SetMember, SetOutcome, SoloMetrics,
};
use cohabit_types::{Bytes, SharingStrategy};

use super::error::MeasurementsError;
use super::missing_pairs::{AdditiveEffects, PairSlowdown};

/// Sets of two and more are taken from the first of these ways of sharing that occurs; ways are not mixed.
const SHARING: [Option<SharingStrategy>; 4] =
    [Some(SharingStrategy::Mps), None, Some(SharingStrategy::TimeSliced), Some(SharingStrategy::Exclusive)];
/// Two jobs that each keep a GPU busy for this fraction of the time do not yet slow each other, by the law of
/// slowdown. Beyond it the slowdown grows in proportion.
const BUSY_OF_HARMLESS: f64 = 0.475;

/// The table of one GPU model.
pub(super) struct Table {
    /// The GPU model, as the cluster calls it.
    pub(super) make: String,
    /// The least memory of such a device in the cluster.
    pub(super) memory: Bytes,
    /// The members by configuration, with the values measured alone.
    members: BTreeMap<Configuration, SetMember>,
    /// How the devices of the sets of two and more were shared.
    pub(super) sharing: Option<SharingStrategy>,
    /// Sets of two and more.
    sets: Vec<MeasuredSet>,
    effects: AdditiveEffects,
}

impl Table {
    pub(super) fn of_make(
        measured: &[MeasuredSet],
        make: &str,
        memory: Bytes,
    ) -> Result<Table, MeasurementsError> {
        let own = measured.iter().filter(|it| is_make(&it.set.gpu, make));
        // A set that did not fit says nothing about devices with more memory than the measured one.
        let own = own.filter(|it| it.outcome != SetOutcome::DidNotFit || bounds_fit(&it.set.gpu, memory));
        let own: Vec<MeasuredSet> = own.map(|it| renamed(it, make)).collect();
        if own.is_empty() {
            let known: BTreeSet<&str> = measured.iter().map(|it| it.set.gpu.name()).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(MeasurementsError::NoSuchGpu { make: make.to_owned(), known });
        }
        let mut members = BTreeMap::new();
        own.iter().flat_map(|it| &it.set.members).for_each(|member| add_member(&mut members, member));
        let together = |it: &&MeasuredSet| it.set.members.len() > 1;
        let sharing = SHARING
            .into_iter()
            .find(|sharing| own.iter().filter(together).any(|it| it.set.sharing == *sharing));
        let sharing = sharing.ok_or_else(|| MeasurementsError::NoPairs { make: make.to_owned() })?;
        let sets = own.into_iter().filter(|it| together(&it) && it.set.sharing == sharing);
        let sets: Vec<MeasuredSet> = sets.map(without_sharing).collect();
        let effects = effects(&sets);
        Ok(Table { make: make.to_owned(), memory, members, sharing, sets, effects })
    }

    pub(super) fn kind(&self) -> GpuKind {
        GpuKind::named(&self.make)
    }

    /// Every member that occurs in the table.
    pub(super) fn members(&self) -> impl Iterator<Item = &SetMember> {
        self.members.values()
    }

    /// The values of a configuration alone, if its rate was measured. A missing utilization follows from the
    /// mutual slowdown of two copies.
    pub(super) fn solo(&self, configuration: &Configuration) -> Option<SoloMetrics> {
        let solo = &self.members.get(configuration)?.solo;
        solo.rate.filter(|rate| *rate > 0.0)?;
        let effects = || (BUSY_OF_HARMLESS * self.self_slowdown(configuration)).min(1.0);
        Some(SoloMetrics { utilization: Some(solo.utilization.unwrap_or_else(effects)), ..solo.clone() })
    }

    /// The slowdown of a configuration beside a copy of itself.
    fn self_slowdown(&self, configuration: &Configuration) -> f64 {
        let pair = |it: &&MeasuredSet| it.set.members.len() == 2;
        let both = |it: &&MeasuredSet| it.set.members.iter().all(|it| it.configuration() == *configuration);
        let observed = self.sets.iter().filter(pair).filter(both).find_map(|it| match &it.outcome {
            SetOutcome::Ran(observed) => Some(observed.iter().map(|it| it.slowdown).sum::<f64>() / 2.0),
            SetOutcome::DidNotFit => None,
        });
        observed.unwrap_or_else(|| self.effects.slowdown(configuration, configuration))
    }

    /// The measured sets, and every pair of these configurations that was not measured.
    pub(super) fn completed(self, known: &[Configuration]) -> Vec<MeasuredSet> {
        let measured: BTreeSet<Vec<Configuration>> = self.sets.iter().map(key).collect();
        let mut added = Vec::new();
        for (place, one) in known.iter().enumerate() {
            for other in &known[place..] {
                let pair = [one, other].map(|it| self.members.get(it).cloned());
                if let [Some(first), Some(second)] = pair {
                    let slowdown = |job, partner| MeasuredMember {
                        slowdown: self.effects.slowdown(job, partner),
                        ..MeasuredMember::default()
                    };
                    let outcome = SetOutcome::Ran(vec![slowdown(one, other), slowdown(other, one)]);
                    let members = vec![first, second];
                    let set = ColocationSet { gpu: self.kind(), sharing: None, members };
                    added.push(MeasuredSet { set, outcome });
                }
            }
        }
        added.retain(|pair| !measured.contains(&key(pair)));
        self.sets.into_iter().chain(added).collect()
    }
}

/// Whether both names mean the same GPU model.
fn is_make(gpu: &GpuKind, make: &str) -> bool {
    let kind = GpuKind::named(make);
    let name = |kind: &GpuKind| kind.model().map(|model| model.name);
    *gpu == kind || name(gpu).is_some_and(|it| name(&kind) == Some(it))
}

/// Whether a set that did not fit there does not fit into this much memory either.
fn bounds_fit(gpu: &GpuKind, memory: Bytes) -> bool {
    gpu.memory().is_none_or(|measured_on| memory <= measured_on)
}

/// The set with the cluster's name for the GPU.
fn renamed(measured: &MeasuredSet, make: &str) -> MeasuredSet {
    let set = ColocationSet { gpu: GpuKind::named(make), ..measured.set.clone() };
    MeasuredSet { set, outcome: measured.outcome.clone() }
}

fn without_sharing(mut measured: MeasuredSet) -> MeasuredSet {
    measured.set.sharing = None;
    measured
}

/// Adds a member: the first known value counts, but the largest memory.
fn add_member(members: &mut BTreeMap<Configuration, SetMember>, member: &SetMember) {
    let known = members.entry(member.configuration()).or_insert_with(|| member.clone());
    let (solo, new) = (&mut known.solo, &member.solo);
    solo.rate = solo.rate.or(new.rate);
    solo.utilization = solo.utilization.or(new.utilization);
    solo.memory = [solo.memory, new.memory].into_iter().flatten().reduce(f64::max);
}

fn effects(sets: &[MeasuredSet]) -> AdditiveEffects {
    let configurations: Vec<Vec<Configuration>> =
        sets.iter().map(|it| it.set.members.iter().map(SetMember::configuration).collect()).collect();
    let mut slowdowns = Vec::new();
    for (it, members) in sets.iter().zip(&configurations) {
        if let ([one, other], SetOutcome::Ran(observed)) = (&members[..], &it.outcome) {
            let both = [(one, other), (other, one)].into_iter().zip(observed);
            slowdowns.extend(both.map(|((job, partner), it)| PairSlowdown {
                job,
                partner,
                slowdown: it.slowdown,
            }));
        }
    }
    AdditiveEffects::of(&slowdowns)
}

fn key(measured: &MeasuredSet) -> Vec<Configuration> {
    let mut key: Vec<Configuration> = measured.set.members.iter().map(SetMember::configuration).collect();
    key.sort();
    key
}
