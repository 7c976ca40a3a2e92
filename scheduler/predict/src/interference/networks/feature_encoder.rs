//! The inputs of a network: the numbers of members, their identities, and measured pairs; and its outputs.

use std::collections::BTreeSet;

use cohabit_policy::interference::{
    ColocationSet, Configuration, GpuKind, MeasuredSet, SetMember, SetOutcome,
};
use serde::{Deserialize, Serialize};

use super::columns::{self, Column};
use super::pair_table::PairTable;
use super::scales::{ColumnPlaces, Scales, Scaling};
use super::usage_outputs::UsageOutputs;

/// Encodes sets for a network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FeatureEncoder {
    scales: Scales,
    /// The metrics of jobs alone, scaled to the range from 0 to 1.
    metrics: Scales,
    #[serde(rename = "known")]
    vocabulary: Vocabulary,
    pub(super) pairs: PairTable,
    #[serde(rename = "steps")]
    pub(super) step_times: StepTimes,
    /// The outputs for memory and utilization; models of earlier releases have none.
    #[serde(default, skip_serializing_if = "UsageOutputs::is_empty")]
    pub(super) usage: UsageOutputs,
}

/// The range of step times of co-located jobs, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct StepTimes {
    pub(super) shortest: f64,
    /// From the shortest to the longest; never 0.
    pub(super) range: f64,
}

/// Jobs and GPUs with embeddings; index 0 stands for all others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Vocabulary {
    configurations: Vec<Configuration>,
    models: Vec<String>,
    gpus: Vec<GpuKind>,
}

/// The identity of a member as indices from 1; 0 is unknown.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct EmbeddingIndices {
    pub(super) configuration: u32,
    pub(super) model: u32,
    pub(super) gpu: u32,
}

impl FeatureEncoder {
    /// Learns the encoding from these sets.
    pub(super) fn learn(measured: &[MeasuredSet], scaling: Scaling) -> FeatureEncoder {
        let rows: Vec<Vec<Column>> = measured.iter().flat_map(|it| rows(&it.set)).collect();
        let members = || measured.iter().flat_map(|it| &it.set.members);
        let configurations: BTreeSet<Configuration> = members().map(SetMember::configuration).collect();
        let models: BTreeSet<String> = members().map(|member| member.model.clone()).collect();
        let gpus: BTreeSet<GpuKind> = measured.iter().map(|it| it.set.gpu.clone()).collect();
        let vocabulary = Vocabulary {
            configurations: configurations.into_iter().collect(),
            models: models.into_iter().filter(|model| !model.is_empty()).collect(),
            gpus: gpus.into_iter().collect(),
        };
        let mut pairs = PairTable::default();
        pairs.learn(measured);
        let scales = Scales::learn(rows.iter().map(Vec::as_slice), scaling);
        let metrics: Vec<Vec<Column>> = measured.iter().flat_map(|it| metrics(&it.set)).collect();
        let metrics = Scales::learn(metrics.iter().map(Vec::as_slice), Scaling::Range);
        let (step_times, usage) = (StepTimes::of(measured), UsageOutputs::default());
        FeatureEncoder { scales, metrics, vocabulary, pairs, step_times, usage }
    }

    /// The number of inputs of a member.
    pub(super) fn width(&self) -> usize {
        self.scales.width()
    }

    /// The number of metrics of a job.
    pub(super) fn metrics(&self) -> usize {
        self.metrics.names().count()
    }

    /// The observed metrics of each member, ordered by name; those that every profile has come first.
    pub(super) fn observed(&self, set: &ColocationSet) -> Vec<Vec<Option<f64>>> {
        metrics(set).iter().map(|row| self.metrics.scale(row)).collect()
    }

    /// The numbers of configurations, models and GPUs, including the unknown one.
    pub(super) fn sizes(&self) -> [usize; 3] {
        let Vocabulary { configurations, models, gpus } = &self.vocabulary;
        [configurations.len() + 1, models.len() + 1, gpus.len() + 1]
    }

    /// The names of the inputs.
    pub(super) fn names(&self) -> Vec<String> {
        self.scales.names().map(str::to_owned).collect()
    }

    /// The inputs of each member.
    pub(super) fn numbers(&self, set: &ColocationSet) -> Vec<Vec<f64>> {
        rows(set).iter().map(|row| self.scales.row(row)).collect()
    }

    /// Encodes many sets one after the other.
    pub(super) fn columns(&self) -> EncodedColumns<'_> {
        EncodedColumns { scales: &self.scales, places: ColumnPlaces::default() }
    }

    /// The identity of each member.
    pub(super) fn identities(&self, set: &ColocationSet) -> Vec<EmbeddingIndices> {
        let gpu = index_of(&self.vocabulary.gpus, &set.gpu);
        let identity = |member: &SetMember| EmbeddingIndices {
            configuration: index_of(&self.vocabulary.configurations, &member.configuration()),
            model: index_of(&self.vocabulary.models, &member.model),
            gpu,
        };
        set.members.iter().map(identity).collect()
    }
}

/// The inputs of many sets; most have the same columns, whose places are remembered.
#[derive(Debug)]
pub(super) struct EncodedColumns<'e> {
    scales: &'e Scales,
    places: ColumnPlaces,
}

impl EncodedColumns<'_> {
    /// Gives the inputs of each member of a set, one after the other.
    pub(super) fn numbers(&mut self, set: &ColocationSet, mut give: impl FnMut(f64)) {
        for row in rows(set) {
            self.scales.find(&row, &mut self.places);
            self.scales.each(&row, &self.places, &mut give);
        }
    }
}

impl StepTimes {
    fn of(measured: &[MeasuredSet]) -> StepTimes {
        let (mut shortest, mut longest) = (f64::INFINITY, 0.0_f64);
        for it in measured {
            let SetOutcome::Ran(observed) = &it.outcome else { continue };
            for (member, observed) in it.set.members.iter().zip(observed) {
                if let Some(rate) = member.solo.rate.filter(|rate| *rate > 0.0) {
                    let seconds = observed.slowdown.max(1.0) / rate;
                    (shortest, longest) = (shortest.min(seconds), longest.max(seconds));
                }
            }
        }
        if shortest < longest {
            StepTimes { shortest, range: longest - shortest }
        } else {
            StepTimes { shortest: 0.0, range: longest.max(1.0) }
        }
    }
}

/// The index from 1 in an ordered list; 0 if it is not in the list.
fn index_of<T: Ord>(known: &[T], one: &T) -> u32 {
    known.binary_search(one).map_or(0, |at| u32::try_from(at + 1).unwrap_or(0))
}

fn metrics(set: &ColocationSet) -> Vec<Vec<Column>> {
    set.members.iter().map(|member| columns::measured(set, member)).collect()
}

fn rows(set: &ColocationSet) -> Vec<Vec<Column>> {
    let gpu_columns = columns::gpu_columns(set);
    let row = |(place, member): (usize, &SetMember)| {
        let own = columns::job_columns(set, member).into_iter().chain(columns::measured(set, member));
        own.chain(columns::colocation_columns(set, place)).chain(gpu_columns.clone()).collect()
    };
    set.members.iter().enumerate().map(row).collect()
}
