//! What the cluster observed: how fast configurations ran alone and in which sets, collected from samples,
//! and which sets did not fit into the memory of a GPU.
//!
//! A set did not fit if a job found no memory left in it. That counts until the job's configuration has run
//! in the set at a later time, and it says nothing of the set while the configuration fails alone as well.
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
use super::{
    ColocationSet, Configuration, GpuKind, MeasuredMember, MeasuredSet, ObservedMisfit, ObservedSample,
    SetMember, SetOutcome, SoloMetrics, SoloMetricsTable,
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
    /// The configurations that found no memory left, and when they last did.
    misfits: BTreeMap<Configuration, Time>,
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
            self.history_of(sample.set(), sample.until).note(sample);
            self.evict_oldest();
        }
    }

    /// Adds that a set did not fit, or that a job does not fit alone; unless a job on the device has no name.
    pub fn note_misfit(&mut self, misfit: &ObservedMisfit) {
        if let Some(set) = misfit.set() {
            self.history_of(set, misfit.at).note_misfit(misfit);
            self.evict_oldest();
        }
    }

    /// The history of a set that was seen at this time.
    fn history_of(&mut self, set: ColocationSet, seen: Time) -> &mut SetHistory {
        let history = match self.sets.entry(SetKey::of(&set)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(SetHistory::new(set, seen)),
        };
        history.first = history.first.min(seen);
        history.last = history.last.max(seen);
        history
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

    /// Every set of two or more that did not fit, or whose members' rates together and alone are all known,
    /// the oldest first. What a member does alone is taken from another way of sharing the same kind of GPU,
    /// if necessary.
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
        let did_not_fit = self.did_not_fit(history);
        let (mut members, mut observed, mut uncertainties) = (Vec::new(), Vec::new(), Vec::new());
        for member in &history.set.members {
            let configuration = member.configuration();
            let together = history.stats.get(&configuration);
            let alone = self.alone(&history.set.gpu, history.set.sharing, &configuration);
            let solo = alone.map_or_else(|| member.solo.clone(), |alone| alone.solo(&member.solo));
            members.push(SetMember { solo, ..member.clone() });
            if !did_not_fit {
                let together = together?;
                let (slowdown, uncertainty) = together.beside(alone?);
                observed.push(MeasuredMember { slowdown, memory: together.memory(), utilization: None });
                uncertainties.push(uncertainty);
            }
        }
        let outcome = if did_not_fit { SetOutcome::DidNotFit } else { SetOutcome::Ran(observed) };
        let measured = MeasuredSet { set: ColocationSet { members, ..history.set.clone() }, outcome };
        Some(ObservedSet { measured, uncertainty: uncertainties, first: history.first, last: history.last })
    }

    /// Whether a member found no memory left in this set that it finds alone.
    fn did_not_fit(&self, history: &SetHistory) -> bool {
        history.misfits().any(|configuration| !self.fails_alone(&history.set.gpu, configuration))
    }

    fn fails_alone(&self, gpu: &GpuKind, configuration: &Configuration) -> bool {
        let alone = |sharing| self.sets.get(&SetKey::alone(gpu, sharing, configuration));
        NEXT_BEST.into_iter().filter_map(alone).any(|history| history.misfits().next().is_some())
    }

    /// What a configuration did alone on the GPU, with this way of sharing or else with another.
    fn alone(
        &self,
        gpu: &GpuKind,
        sharing: Option<SharingStrategy>,
        configuration: &Configuration,
    ) -> Option<&ConfigurationStats> {
        sharing.into_iter().chain(NEXT_BEST).find_map(|sharing| {
            self.sets.get(&SetKey::alone(gpu, sharing, configuration))?.stats.get(configuration)
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
        SetHistory { set, stats: BTreeMap::new(), misfits: BTreeMap::new(), first: seen, last: seen }
    }

    fn note(&mut self, sample: &ObservedSample) {
        self.stats.entry(sample.member.configuration()).or_default().note(sample);
    }

    fn note_misfit(&mut self, misfit: &ObservedMisfit) {
        let last = self.misfits.entry(misfit.member.configuration()).or_insert(misfit.at);
        *last = misfit.at.max(*last);
    }

    /// The configurations that found no memory left, and have not run here since.
    fn misfits(&self) -> impl Iterator<Item = &Configuration> {
        let ran_since = |configuration: &Configuration, failed: Time| {
            self.stats.get(configuration).is_some_and(|stats| stats.ran_after(failed))
        };
        let last = self.misfits.iter().filter(move |(it, failed)| !ran_since(it, **failed));
        last.map(|(configuration, _)| configuration)
    }
}

#[cfg(test)]
mod tests;
