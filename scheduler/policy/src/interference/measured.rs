//! Measured sets, and a table of them as a predictor: what was measured is what is expected.

use std::collections::BTreeMap;

use cohabit_types::SharingStrategy;
use serde::{Deserialize, Serialize};

use super::{
    AnalyticInterference, ColocationEstimate, ColocationSet, Configuration, GpuKind, Interference,
    MaxMinSharing, SetMember, UNKNOWN_UNCERTAINTY,
};

/// A set and what was measured of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredSet {
    /// The jobs, with what is known of each alone.
    pub set: ColocationSet,
    /// What happened to them.
    pub outcome: SetOutcome,
}

/// What happened to a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SetOutcome {
    /// It ran; a measurement for each member, in their order.
    Ran(Vec<MeasuredMember>),
    /// It did not fit the GPU's memory.
    DidNotFit,
}

/// What was measured of one member of a set.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeasuredMember {
    /// The time of a step over that alone.
    pub slowdown: f64,
    /// The most memory that it held, in bytes.
    pub memory: Option<f64>,
    /// The fraction of time during which it kept the GPU busy, 0 to 1.
    #[serde(rename = "utilisation")]
    pub utilization: Option<f64>,
}

/// A table of measured sets.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct MeasuredTable {
    sets: BTreeMap<SetKey, Entry>,
}

/// A set regardless of the order of its members, which are known by their configurations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SetKey {
    pub(super) gpu: GpuKind,
    pub(super) sharing: Option<SharingStrategy>,
    pub(super) configurations: Vec<Configuration>,
}

/// All measurements of a set.
#[derive(Debug, Default, Clone, PartialEq)]
struct Entry {
    did_not_fit: usize,
    /// Of the runs; members in the order of the key's configurations.
    ran: Vec<Vec<MeasuredMember>>,
}

/// How far two measurements of one set differ: standard deviation of the logarithm of a slowdown.
const UNCERTAINTY: f64 = 0.03;
/// The same, for a larger set composed of its pairs.
const UNCERTAINTY_OF_COMPOSITION: f64 = 0.15;

impl MeasuredTable {
    /// The table of these measurements; a set that was measured more than once counts by its mean.
    #[must_use]
    pub fn of<'a>(measured: impl IntoIterator<Item = &'a MeasuredSet>) -> MeasuredTable {
        let mut table = MeasuredTable::default();
        measured.into_iter().for_each(|it| table.add(it));
        table
    }

    fn add(&mut self, measured: &MeasuredSet) {
        let entry = self.sets.entry(SetKey::of(&measured.set)).or_default();
        match &measured.outcome {
            SetOutcome::DidNotFit => entry.did_not_fit += 1,
            SetOutcome::Ran(observed) => {
                let in_order = order_by_configuration(&measured.set.members).into_iter();
                entry.ran.push(in_order.filter_map(|at| observed.get(at)).copied().collect());
            }
        }
    }

    fn of_set(&self, set: &ColocationSet) -> Vec<ColocationEstimate> {
        if let [member] = &set.members[..] {
            return vec![ColocationEstimate::alone(member)];
        }
        match self.entry(set) {
            Some(entry) => entry.of_members(&set.members),
            None => self.composed(set).unwrap_or_else(|| unknown(set)),
        }
    }

    /// The measurements of a set. Those that do not tell how the GPU was shared stand for any way.
    fn entry(&self, set: &ColocationSet) -> Option<&Entry> {
        let in_any_way = || SetKey::of(&ColocationSet { sharing: None, ..set.clone() });
        self.sets.get(&SetKey::of(set)).or_else(|| self.sets.get(&in_any_way()))
    }

    /// The answer for a set that was not measured, if all its pairs were: the costs of all partners add up.
    fn composed(&self, set: &ColocationSet) -> Option<Vec<ColocationEstimate>> {
        let mut excess = vec![0.0; set.members.len()];
        let mut fits: f64 = 1.0;
        for one in 0..set.members.len() {
            for other in one + 1..set.members.len() {
                let members = vec![set.members[one].clone(), set.members[other].clone()];
                let pair = ColocationSet { members, ..set.clone() };
                let known = self.entry(&pair)?.of_members(&pair.members);
                excess[one] += known[0].slowdown - 1.0;
                excess[other] += known[1].slowdown - 1.0;
                fits = fits.min(known[0].fits);
            }
        }
        let filled = set.memory_filled().is_some_and(|filled| filled > 1.0);
        let fits = if filled { 0.0 } else { fits };
        let of_member = |(member, excess): (&SetMember, f64)| {
            let slowed = ColocationEstimate::slowed(member, 1.0 + excess, UNCERTAINTY_OF_COMPOSITION);
            ColocationEstimate { fits, ..slowed }
        };
        (set.members.len() > 2).then(|| set.members.iter().zip(excess).map(of_member).collect())
    }
}

impl Interference for MeasuredTable {
    fn predict(&self, sets: &[ColocationSet]) -> Vec<Vec<ColocationEstimate>> {
        sets.iter().map(|set| self.of_set(set)).collect()
    }
}

/// The answer of the analytic model, with a large uncertainty.
fn unknown(set: &ColocationSet) -> Vec<ColocationEstimate> {
    let estimates = AnalyticInterference::<MaxMinSharing>::default().predict(std::slice::from_ref(set));
    let widened = |member| ColocationEstimate { uncertainty: UNKNOWN_UNCERTAINTY, ..member };
    estimates.into_iter().flatten().map(widened).collect()
}

impl ColocationSet {
    /// The set of a job and its neighbors, in the order of their configurations.
    pub(super) fn of_observed(
        gpu: &GpuKind,
        sharing: SharingStrategy,
        member: &SetMember,
        neighbors: &[SetMember],
    ) -> ColocationSet {
        let everybody: Vec<SetMember> = [member].into_iter().chain(neighbors).cloned().collect();
        let members =
            order_by_configuration(&everybody).into_iter().map(|at| everybody[at].clone()).collect();
        ColocationSet { gpu: gpu.clone(), sharing: Some(sharing), members }
    }
}

impl SetKey {
    pub(super) fn of(set: &ColocationSet) -> SetKey {
        let configurations =
            order_by_configuration(&set.members).into_iter().map(|at| set.members[at].configuration());
        let configurations = configurations.collect();
        SetKey { gpu: set.gpu.clone(), sharing: set.sharing, configurations }
    }

    /// The key of a configuration that has the GPU for itself.
    pub(super) fn alone(gpu: &GpuKind, sharing: SharingStrategy, configuration: &Configuration) -> SetKey {
        let configurations = vec![configuration.clone()];
        SetKey { gpu: gpu.clone(), sharing: Some(sharing), configurations }
    }
}

/// The indices of members in the order of their configurations.
pub(super) fn order_by_configuration(members: &[SetMember]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..members.len()).collect();
    places.sort_by_cached_key(|at| members[*at].configuration());
    places
}

impl Entry {
    fn of_members(&self, members: &[SetMember]) -> Vec<ColocationEstimate> {
        let fits = self.ran.len() as f64 / (self.ran.len() + self.did_not_fit).max(1) as f64;
        let mut estimates: Vec<ColocationEstimate> = members
            .iter()
            .map(|member| ColocationEstimate::slowed(member, 1.0, UNKNOWN_UNCERTAINTY))
            .collect();
        let order = order_by_configuration(members);
        let configurations: Vec<Configuration> =
            order.iter().map(|at| members[*at].configuration()).collect();
        for (at, configuration) in order.iter().copied().zip(&configurations) {
            // A table cannot tell members of one configuration apart: each is their mean.
            let same = |members: &Vec<MeasuredMember>| {
                let known = members.iter().copied().zip(&configurations);
                known.filter(|(_, it)| *it == configuration).map(|(it, _)| it).collect::<Vec<_>>()
            };
            let observed: Vec<MeasuredMember> = self.ran.iter().flat_map(same).collect();
            if let Some(ln) = mean(observed.iter().map(|it| Some(it.slowdown.max(1.0).ln()))) {
                let usual = ColocationEstimate::slowed(&members[at], ln.exp(), UNCERTAINTY);
                let memory = mean(observed.iter().map(|it| it.memory));
                let utilization = mean(observed.iter().map(|it| it.utilization));
                estimates[at] = ColocationEstimate {
                    memory: memory.or(usual.memory),
                    utilization: utilization.or(usual.utilization),
                    ..usual
                };
            }
            estimates[at].fits = fits;
        }
        estimates
    }
}

/// The mean of the values that exist; `None` without any.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Vec<f64> = values.flatten().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
