//! What a network looks at: the numbers of members, which known job each is, and measured pairs.

use std::collections::BTreeSet;

use cohabit_policy::interference::{CoLocation, Configuration, GpuKind, MeasuredSet, Member, Outcome};
use serde::{Deserialize, Serialize};

use super::columns::{self, Column};
use super::pairs::Pairs;
use super::scales::{Scales, Scaling};

/// What a network looks at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Look {
    scales: Scales,
    /// Of what was measured of jobs alone, in the range from 0 to 1.
    metrics: Scales,
    known: Known,
    pub(super) pairs: Pairs,
    pub(super) steps: StepTimes,
}

/// How long steps of jobs beside others take, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct StepTimes {
    pub(super) shortest: f64,
    /// From the shortest to the longest; never 0.
    pub(super) range: f64,
}

/// Jobs and GPUs that have numbers of their own; 0 stands for all others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Known {
    configurations: Vec<Configuration>,
    models: Vec<String>,
    gpus: Vec<GpuKind>,
}

/// Which job a member is, by places from 1; 0 is unknown.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) configuration: u32,
    pub(super) model: u32,
    pub(super) gpu: u32,
}

impl Look {
    /// Learns from these sets what there is to look at.
    pub(super) fn learn(measured: &[MeasuredSet], scaling: Scaling) -> Look {
        let rows: Vec<Vec<Column>> = measured.iter().flat_map(|it| rows(&it.set)).collect();
        let members = || measured.iter().flat_map(|it| &it.set.members);
        let configurations: BTreeSet<Configuration> = members().map(Member::configuration).collect();
        let models: BTreeSet<String> = members().map(|member| member.model.clone()).collect();
        let gpus: BTreeSet<GpuKind> = measured.iter().map(|it| it.set.gpu.clone()).collect();
        let known = Known {
            configurations: configurations.into_iter().collect(),
            models: models.into_iter().filter(|model| !model.is_empty()).collect(),
            gpus: gpus.into_iter().collect(),
        };
        let mut pairs = Pairs::default();
        pairs.learn(measured);
        let scales = Scales::learn(rows.iter().map(Vec::as_slice), scaling);
        let metrics: Vec<Vec<Column>> = measured.iter().flat_map(|it| metrics(&it.set)).collect();
        let metrics = Scales::learn(metrics.iter().map(Vec::as_slice), Scaling::Range);
        Look { scales, metrics, known, pairs, steps: StepTimes::of(measured) }
    }

    /// How many numbers a member has.
    pub(super) fn width(&self) -> usize {
        self.scales.width()
    }

    /// How many metrics a job has.
    pub(super) fn metrics(&self) -> usize {
        self.metrics.names().count()
    }

    /// The metrics of each member, as far as they were observed; in the order of their names, and those that
    /// every profile has first.
    pub(super) fn observed(&self, set: &CoLocation) -> Vec<Vec<Option<f64>>> {
        metrics(set).iter().map(|row| self.metrics.told(row)).collect()
    }

    /// How many configurations, models and GPUs are told apart, the unknown one included.
    pub(super) fn sizes(&self) -> [usize; 3] {
        let Known { configurations, models, gpus } = &self.known;
        [configurations.len() + 1, models.len() + 1, gpus.len() + 1]
    }

    /// The names of the numbers.
    pub(super) fn names(&self) -> Vec<String> {
        self.scales.names().map(str::to_owned).collect()
    }

    /// The numbers of each member.
    pub(super) fn numbers(&self, set: &CoLocation) -> Vec<Vec<f64>> {
        rows(set).iter().map(|row| self.scales.row(row)).collect()
    }

    /// Which job each member is.
    pub(super) fn identities(&self, set: &CoLocation) -> Vec<Identity> {
        let gpu = place(&self.known.gpus, &set.gpu);
        let identity = |member: &Member| Identity {
            configuration: place(&self.known.configurations, &member.configuration()),
            model: place(&self.known.models, &member.model),
            gpu,
        };
        set.members.iter().map(identity).collect()
    }
}

impl StepTimes {
    fn of(measured: &[MeasuredSet]) -> StepTimes {
        let (mut shortest, mut longest) = (f64::INFINITY, 0.0_f64);
        for it in measured {
            let Outcome::Ran(observed) = &it.outcome else { continue };
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

/// From 1, in an ordered list; 0 where it is not in it.
fn place<T: Ord>(known: &[T], one: &T) -> u32 {
    known.binary_search(one).map_or(0, |at| u32::try_from(at + 1).unwrap_or(0))
}

fn metrics(set: &CoLocation) -> Vec<Vec<Column>> {
    set.members.iter().map(|member| columns::measured(set, member)).collect()
}

fn rows(set: &CoLocation) -> Vec<Vec<Column>> {
    let of_place = columns::of_place(set);
    let row = |(place, member): (usize, &Member)| {
        let own = columns::of_job(set, member).into_iter().chain(columns::measured(set, member));
        own.chain(columns::of_company(set, place)).chain(of_place.clone()).collect()
    };
    set.members.iter().enumerate().map(row).collect()
}
