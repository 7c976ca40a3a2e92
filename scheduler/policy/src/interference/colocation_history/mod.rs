//! What the cluster observed: how fast configurations ran alone and in which sets, collected from samples.
//!
//! Recent samples count more than old ones, so that a program that was changed under its old name is
//! noticed; sets that were not seen for the longest time are dropped, so that the history stays small. Jobs
//! are known by their configurations: one without a name is ignored.

mod configuration_stats;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use cohabit_types::{SharingStrategy, Time};

use self::configuration_stats::ConfigurationStats;
use super::measured::SetKey;
use super::observed_sample::ObservedSample;
use super::{
    ColocationSet, Configuration, GpuKind, MeasuredMember, MeasuredSet, SetMember, SetOutcome, SoloMetrics,
    SoloMetricsTable,
};

/// Samples, collected by configuration.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ColocationHistory {
    sets: BTreeMap<SetKey, SetHistory>,
}

/// A set of two or more with what each member did in it and alone.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedSet {
    /// The members, with what they did alone, and what happened to them.
    pub measured: MeasuredSet,
    /// Standard deviation of the logarithm of each member's slowdown, in the members' order.
    pub uncertainty: Vec<f64>,
    /// When its first remembered sample ended.
    pub first: Time,
    /// When it was last seen.
    pub last: Time,
}

/// The configurations on one GPU, some of which may have no sample yet; or a single one.
#[derive(Debug, Clone, PartialEq)]
struct SetHistory {
    set: ColocationSet,
    /// Members of one configuration are the same.
    stats: BTreeMap<Configuration, ConfigurationStats>,
    first: Time,
    last: Time,
}

/// Sets that are remembered, including those of one member.
const MAX_TRACKED_SETS: usize = 8_192;

/// Where the measurements alone come from if there are none with the set's own way of sharing.
const NEXT_BEST: [SharingStrategy; 3] =
    [SharingStrategy::Exclusive, SharingStrategy::Mps, SharingStrategy::TimeSliced];

impl ColocationHistory {
    /// Adds a sample, unless it is too short, or a job on the device has no name.
    pub fn note(&mut self, sample: &ObservedSample) {
        if sample.is_informative() {
            let set = sample.set();
            let history = match self.sets.entry(SetKey::of(&set)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(SetHistory::new(set, sample.until)),
            };
            history.note(sample);
            self.evict_oldest();
        }
    }

    /// The measurements of configurations alone: those observed here and, for all others, those of `beside`.
    #[must_use]
    pub fn solos(&self, beside: &SoloMetricsTable) -> SoloMetricsTable {
        let mut table = beside.clone();
        for key in self.sets.keys().filter(|key| key.configurations.len() == 1) {
            let configuration = &key.configurations[0];
            if let Some(alone) = self.alone(&key.gpu, None, configuration) {
                let elsewhere = beside.find(&key.gpu, configuration).map(|(_, solo)| solo);
                let solo = alone.solo(elsewhere.unwrap_or(&SoloMetrics::default()));
                table.insert(key.gpu.clone(), configuration.clone(), solo);
            }
        }
        table
    }

    /// Every set of two or more whose members' rates together and alone are all known, the oldest first.
    /// What a member does alone is taken from another way of sharing the same kind of GPU, if necessary.
    #[must_use]
    pub fn sets(&self) -> Vec<ObservedSet> {
        let mut sets: Vec<ObservedSet> = self.sets.values().filter_map(|it| self.observed(it)).collect();
        sets.sort_by_key(|it| it.last);
        sets
    }

    fn observed(&self, history: &SetHistory) -> Option<ObservedSet> {
        if history.set.members.len() < 2 {
            return None;
        }
        let mut sample = ObservedSet {
            measured: MeasuredSet {
                set: ColocationSet { members: Vec::new(), ..history.set.clone() },
                outcome: SetOutcome::Ran(Vec::new()),
            },
            uncertainty: Vec::new(),
            first: history.first,
            last: history.last,
        };
        let mut observed = Vec::new();
        for member in &history.set.members {
            let configuration = member.configuration();
            let together = history.stats.get(&configuration)?;
            let alone = self.alone(&history.set.gpu, history.set.sharing, &configuration)?;
            let (slowdown, uncertainty) = together.beside(alone);
            observed.push(MeasuredMember { slowdown, memory: together.memory(), utilization: None });
            sample.uncertainty.push(uncertainty);
            let member = SetMember { solo: alone.solo(&member.solo), ..member.clone() };
            sample.measured.set.members.push(member);
        }
        sample.measured.outcome = SetOutcome::Ran(observed);
        Some(sample)
    }

    /// What a configuration did alone on the GPU, with this way of sharing or else with another.
    fn alone(
        &self,
        gpu: &GpuKind,
        sharing: Option<SharingStrategy>,
        configuration: &Configuration,
    ) -> Option<&ConfigurationStats> {
        sharing.into_iter().chain(NEXT_BEST).find_map(|sharing| {
            let configurations = vec![configuration.clone()];
            let key = SetKey { gpu: gpu.clone(), sharing: Some(sharing), configurations };
            self.sets.get(&key)?.stats.get(configuration)
        })
    }

    /// Sets are dropped before single configurations, without which sets tell nothing.
    fn evict_oldest(&mut self) {
        if self.sets.len() > MAX_TRACKED_SETS {
            let age = |(_, history): &(&SetKey, &SetHistory)| (history.set.members.len() == 1, history.last);
            let oldest = self.sets.iter().min_by_key(age).map(|(key, _)| key.clone());
            oldest.map(|key| self.sets.remove(&key));
        }
    }
}

impl SetHistory {
    const fn new(set: ColocationSet, seen: Time) -> SetHistory {
        SetHistory { set, stats: BTreeMap::new(), first: seen, last: seen }
    }

    fn note(&mut self, sample: &ObservedSample) {
        self.first = self.first.min(sample.until);
        self.last = self.last.max(sample.until);
        self.stats.entry(sample.member.configuration()).or_default().note(sample);
    }
}

#[cfg(test)]
mod tests;
