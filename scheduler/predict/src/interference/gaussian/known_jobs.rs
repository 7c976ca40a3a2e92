//! The jobs that a process has seen, and how alike two jobs are.

use std::collections::BTreeMap;

use cohabit_policy::interference::{Configuration, SetMember};
use cohabit_types::ModelFamily;
use serde::{Deserialize, Serialize};

/// What two jobs are compared by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct JobCovariates {
    configuration: Configuration,
    family: Option<ModelFamily>,
    /// Measured or told numbers by name, each on a scale on which a step of one is much.
    numbers: BTreeMap<String, f64>,
}

/// Jobs that were seen, each known by its place here.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KnownJobs {
    jobs: Vec<JobCovariates>,
}

/// How much each kind of likeness of two jobs counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct SimilarityWeights {
    /// The same configuration.
    pub(super) configuration: f64,
    /// The same model; less the further apart the batches are.
    pub(super) model: f64,
    /// The same family.
    pub(super) family: f64,
    /// The same measured and told numbers; less the further apart they are.
    pub(super) numbers: f64,
}

/// Batches that differ by a factor of 2 to this are as far apart as one standard deviation.
const BATCH_SCALE: f64 = 2.0;

impl JobCovariates {
    pub(super) fn of(member: &SetMember) -> JobCovariates {
        let logarithm = |value: f64, scale: f64| value.max(1.0).ln() / scale;
        let features = &member.features;
        let told = [
            ("parameters", features.parameters.map(|it| logarithm(it, 3.0))),
            ("flops_per_sample", features.flops_per_sample.map(|it| logarithm(it, 3.0))),
            ("activation_bytes", features.activation_bytes.map(|it| logarithm(it, 3.0))),
            ("solo_util", member.solo.utilisation.map(|it| it / PART)),
        ];
        // What the performance monitor measures are parts of the time or of the units.
        let measured = member.solo.others.iter().map(|(name, value)| (format!("solo_{name}"), value / PART));
        let told = told.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        JobCovariates {
            configuration: member.configuration(),
            family: member.family,
            numbers: told.chain(measured).collect(),
        }
    }

    /// How alike two jobs are. Numbers are compared where both have the same ones.
    pub(super) fn similarity(&self, other: &JobCovariates, weights: &SimilarityWeights) -> f64 {
        let (one, two) = (&self.configuration, &other.configuration);
        let mut like = 0.0;
        if one == two {
            like += weights.configuration;
        }
        if one.model == two.model {
            like += weights.model * near(doublings(one) - doublings(two), BATCH_SCALE);
        }
        if self.family.is_some() && self.family == other.family {
            like += weights.family;
        }
        if !self.numbers.is_empty() && self.numbers.keys().eq(other.numbers.keys()) {
            let apart = self.numbers.values().zip(other.numbers.values());
            let square: f64 = apart.map(|(one, other)| (one - other).powi(2)).sum();
            like += weights.numbers * (-0.5 * square).exp();
        }
        like
    }

    /// The names of its numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &String> {
        self.numbers.keys()
    }
}

/// A step of so much in a part of the time is a step of one.
const PART: f64 = 0.25;

fn doublings(configuration: &Configuration) -> f64 {
    configuration.batch.map_or(0.0, |batch| (batch.max(1) as f64).log2())
}

fn near(distance: f64, scale: f64) -> f64 {
    (-0.5 * (distance / scale).powi(2)).exp()
}

impl KnownJobs {
    /// The place of a job, which is added if need be.
    pub(super) fn place(&mut self, traits: JobCovariates) -> usize {
        let known = self.jobs.iter().position(|job| *job == traits);
        known.unwrap_or_else(|| {
            self.jobs.push(traits);
            self.jobs.len() - 1
        })
    }

    pub(super) fn jobs(&self) -> &[JobCovariates] {
        &self.jobs
    }
}
