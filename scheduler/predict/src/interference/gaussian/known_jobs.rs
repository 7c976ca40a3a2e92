//! The jobs that a process has seen, and the similarity of two jobs.

use std::collections::BTreeMap;

use cohabit_policy::interference::{Configuration, SetMember};
use cohabit_types::ModelFamily;
use serde::{Deserialize, Serialize};

/// What two jobs are compared by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct JobCovariates {
    configuration: Configuration,
    family: Option<ModelFamily>,
    /// Measured and stated numbers by name, scaled so that a difference of 1 is large.
    numbers: BTreeMap<String, f64>,
}

/// The jobs that were seen, each known by its index.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KnownJobs {
    jobs: Vec<JobCovariates>,
}

/// The weights of the kinds of similarity of two jobs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct SimilarityWeights {
    /// The same configuration.
    pub(super) configuration: f64,
    /// The same model; less for batch sizes that are further apart.
    pub(super) model: f64,
    /// The same family.
    pub(super) family: f64,
    /// Similar measured and stated numbers; less for numbers that are further apart.
    pub(super) numbers: f64,
}

/// How similar two jobs are in each way, from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Similarity {
    configuration: f64,
    model: f64,
    family: f64,
    numbers: f64,
}

impl Similarity {
    /// Compares two jobs. Numbers are compared if both have the same ones.
    pub(super) fn of(job: &JobCovariates, other: &JobCovariates) -> Similarity {
        let (one, two) = (&job.configuration, &other.configuration);
        let is = |holds: bool| if holds { 1.0 } else { 0.0 };
        let (mut model, mut numbers) = (0.0, 0.0);
        if one.model == two.model {
            model = near(doublings(one) - doublings(two), BATCH_SCALE);
        }
        if !job.numbers.is_empty() && job.numbers.keys().eq(other.numbers.keys()) {
            let apart = job.numbers.values().zip(other.numbers.values());
            let square: f64 = apart.map(|(one, other)| (one - other).powi(2)).sum();
            numbers = (-0.5 * square).exp();
        }
        let family = is(job.family.is_some() && job.family == other.family);
        Similarity { configuration: is(one == two), model, family, numbers }
    }

    /// The similarity by these weights.
    pub(super) fn weighed(&self, weights: &SimilarityWeights) -> f64 {
        weights.configuration * self.configuration
            + weights.model * self.model
            + weights.family * self.family
            + weights.numbers * self.numbers
    }
}

/// The scale of batch sizes, in doublings.
const BATCH_SCALE: f64 = 2.0;

impl JobCovariates {
    pub(super) fn of(member: &SetMember) -> JobCovariates {
        let logarithm = |value: f64, scale: f64| value.max(1.0).ln() / scale;
        let features = &member.features;
        let described = [
            ("parameters", features.parameters.map(|it| logarithm(it, 3.0))),
            ("flops_per_sample", features.flops_per_sample.map(|it| logarithm(it, 3.0))),
            ("activation_bytes", features.activation_bytes.map(|it| logarithm(it, 3.0))),
            ("solo_util", member.solo.utilization.map(|it| it / PART)),
        ];
        // The metrics of the performance monitor are fractions of time or of the units.
        let measured = member.solo.others.iter().map(|(name, value)| (format!("solo_{name}"), value / PART));
        let described = described.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        JobCovariates {
            configuration: member.configuration(),
            family: member.family,
            numbers: described.chain(measured).collect(),
        }
    }

    /// The similarity of two jobs.
    pub(super) fn similarity(&self, other: &JobCovariates, weights: &SimilarityWeights) -> f64 {
        Similarity::of(self, other).weighed(weights)
    }

    /// The names of its numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &String> {
        self.numbers.keys()
    }
}

/// The scale of fractions: this difference counts as 1.
const PART: f64 = 0.25;

fn doublings(configuration: &Configuration) -> f64 {
    configuration.batch.map_or(0.0, |batch| (batch.max(1) as f64).log2())
}

fn near(distance: f64, scale: f64) -> f64 {
    (-0.5 * (distance / scale).powi(2)).exp()
}

impl KnownJobs {
    /// The index of a job, which is added if it is new.
    pub(super) fn index_of(&mut self, job: JobCovariates) -> usize {
        let known = self.jobs.iter().position(|known| *known == job);
        known.unwrap_or_else(|| {
            self.jobs.push(job);
            self.jobs.len() - 1
        })
    }

    pub(super) fn jobs(&self) -> &[JobCovariates] {
        &self.jobs
    }
}
