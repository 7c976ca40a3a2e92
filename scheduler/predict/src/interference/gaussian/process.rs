//! A Gaussian process over members of sets: measurements of some predict others.
//!
//! The covariance of a member with partners is the mean over its partners.

use std::collections::BTreeSet;

use cohabit_policy::interference::{ColocationSet, GpuKind, SetMember};
use cohabit_types::SharingStrategy;
use serde::{Deserialize, Serialize};

use super::known_jobs::{JobCovariates, KnownJobs, SimilarityWeights};
use super::prior::Prior;
use super::row_table::RowTable;
use crate::interference::cholesky::Cholesky;
use crate::interference::log_slowdown::{Censoring, others};

/// Where a set shares a GPU, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SharingContext {
    gpu: GpuKind,
    sharing: Option<SharingStrategy>,
    members: usize,
}

/// A member with its partners, as indices of known jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SetMemberRow {
    #[serde(rename = "place")]
    pub(super) context: usize,
    pub(super) own: usize,
    pub(super) partners: Vec<usize>,
}

/// Measurements to learn from.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Observations {
    #[serde(rename = "cast")]
    known_jobs: KnownJobs,
    #[serde(rename = "places")]
    contexts: Vec<SharingContext>,
    #[serde(rename = "seats")]
    member_rows: Vec<SetMemberRow>,
    #[serde(rename = "readings")]
    censoring: Vec<Censoring>,
    /// Stored apart, as tensors.
    #[serde(skip)]
    targets: Vec<f64>,
}

/// A Gaussian process with its observations.
#[derive(Debug, Clone)]
pub(super) struct GaussianProcess {
    pub(super) prior: Prior,
    observations: Observations,
    /// Mean of the targets.
    pub(super) mean: f64,
    /// The weight of each observation in a prediction.
    factors: Vec<f64>,
    /// The observations with their weights, arranged for predictions.
    pub(super) table: RowTable,
}

/// The part of a process that is not tensors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct GpMetadata {
    prior: Prior,
    mean: f64,
    #[serde(rename = "lessons")]
    observations: Observations,
}

/// More rows take too long to solve; the newest are kept.
const MAX_ROWS: usize = 3_000;
/// Rounds in which censored targets are estimated again.
const ROUNDS: usize = 6;
/// Similarity of sets with different numbers of members.
const OTHER_SIZE: f64 = 0.7;

impl SharingContext {
    pub(super) fn of(set: &ColocationSet) -> SharingContext {
        SharingContext { gpu: set.gpu.clone(), sharing: set.sharing, members: set.members.len() }
    }

    /// The same place with any two members.
    pub(super) fn of_pair(set: &ColocationSet) -> SharingContext {
        SharingContext { members: 2, ..SharingContext::of(set) }
    }

    pub(super) fn similarity(&self, other: &SharingContext, prior: &Prior) -> f64 {
        let gpu = if self.gpu == other.gpu { 1.0 } else { prior.other_gpu };
        let sharing = if self.sharing == other.sharing { 1.0 } else { prior.other_sharing };
        let size = if self.members == other.members { 1.0 } else { OTHER_SIZE };
        gpu * sharing * size
    }
}

impl Observations {
    /// Adds a measurement of this member of this set.
    pub(super) fn add(&mut self, set: &ColocationSet, member: usize, target: f64, censoring: Censoring) {
        let context = SharingContext::of(set);
        let known = self.contexts.iter().position(|it| *it == context);
        let context = known.unwrap_or_else(|| {
            self.contexts.push(context);
            self.contexts.len() - 1
        });
        let mut job = |member: &SetMember| self.known_jobs.index_of(JobCovariates::of(member));
        let own = job(&set.members[member]);
        let partners = others(&set.members, member).map(&mut job).collect();
        self.member_rows.push(SetMemberRow { context, own, partners });
        self.censoring.push(censoring);
        self.targets.push(target);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.member_rows.is_empty()
    }

    /// The jobs that were seen.
    pub(super) fn jobs(&self) -> &[JobCovariates] {
        self.known_jobs.jobs()
    }

    /// Where sets were seen.
    pub(super) fn contexts(&self) -> &[SharingContext] {
        &self.contexts
    }

    /// Fits a process to the observations, or to as many of the newest as can be solved.
    pub(super) fn learn(mut self, prior: Prior) -> GaussianProcess {
        self.forget(self.member_rows.len().saturating_sub(MAX_ROWS));
        let mean = self.targets.iter().sum::<f64>() / self.targets.len().max(1) as f64;
        let (factors, table) = (Vec::new(), RowTable::default());
        let mut process = GaussianProcess { prior, observations: self, mean, factors, table };
        process.factors = process.solve();
        process.table = RowTable::new(&process.observations.member_rows, &process.factors);
        process
    }

    /// Removes the oldest `surplus` observations, and the jobs that only they mention.
    fn forget(&mut self, surplus: usize) {
        if surplus == 0 {
            return;
        }
        self.member_rows.drain(..surplus);
        self.censoring.drain(..surplus);
        self.targets.drain(..surplus);
        let all = std::mem::take(&mut self.known_jobs);
        for member_row in &mut self.member_rows {
            for job in std::iter::once(&mut member_row.own).chain(&mut member_row.partners) {
                *job = self.known_jobs.index_of(all.jobs()[*job].clone());
            }
        }
    }
}

impl GaussianProcess {
    /// Solves for the weights. A censored target is replaced by its prediction from all other observations.
    fn solve(&self) -> Vec<f64> {
        let Observations { member_rows, censoring, targets: bounds, .. } = &self.observations;
        let similarities = SimilarityMatrices::of_known_jobs(self);
        let covariance = |one: usize, other: usize| {
            let noise = if one == other { self.prior.noise } else { 0.0 };
            noise + similarities.covariance(self, &member_rows[one], &member_rows[other])
        };
        let matrix = Cholesky::of(member_rows.len(), covariance);
        let mut targets = bounds.clone();
        let solved = |targets: &[f64]| {
            let distances: Vec<f64> = targets.iter().map(|target| target - self.mean).collect();
            matrix.solve(&distances)
        };
        for _ in 1..ROUNDS {
            let factors = solved(&targets);
            for (row, factor) in factors.iter().enumerate() {
                let predicted = targets[row] - self.prior.noise * factor;
                targets[row] = censoring[row].learned(bounds[row], predicted);
            }
        }
        solved(&targets)
    }

    /// The observations, so that more can be added.
    pub(super) fn observations(&self) -> &Observations {
        &self.observations
    }

    /// The metadata, the weights and the targets.
    pub(super) fn to_stored(&self) -> (GpMetadata, &[f64], &[f64]) {
        let GaussianProcess { prior, mean, observations, factors, table: _ } = self;
        let metadata = GpMetadata { prior: *prior, mean: *mean, observations: observations.clone() };
        (metadata, factors, &observations.targets)
    }

    /// Restores a process; `None` if the parts do not fit together.
    pub(super) fn restored(
        metadata: GpMetadata,
        factors: Vec<f64>,
        targets: Vec<f64>,
    ) -> Option<GaussianProcess> {
        let GpMetadata { prior, mean, observations } = metadata;
        let rows = observations.member_rows.len();
        let jobs = observations.known_jobs.jobs().len();
        let known = |member_row: &SetMemberRow| {
            let context = member_row.context < observations.contexts.len();
            context && member_row.own < jobs && member_row.partners.iter().all(|it| *it < jobs)
        };
        let whole = [observations.censoring.len(), factors.len(), targets.len()] == [rows; 3];
        let whole = whole && observations.member_rows.iter().all(known);
        whole.then_some(GaussianProcess {
            prior,
            mean,
            table: RowTable::new(&observations.member_rows, &factors),
            observations: Observations { targets, ..observations },
            factors,
        })
    }

    /// The names of all numbers that jobs are compared by.
    pub(super) fn numbers(&self) -> BTreeSet<String> {
        self.observations.known_jobs.jobs().iter().flat_map(JobCovariates::numbers).cloned().collect()
    }
}

impl Prior {
    fn covariance(&self, context: f64, alone: f64, both: f64) -> f64 {
        context * (self.common + alone + self.pair_on_gpu * both) + self.pair * both
    }
}

/// All similarities between the known jobs and contexts, row by row.
struct SimilarityMatrices {
    jobs: usize,
    contexts: usize,
    between_contexts: Vec<f64>,
    sensitivity: Vec<f64>,
    pressure: Vec<f64>,
    partners: Vec<f64>,
}

impl SimilarityMatrices {
    fn of_known_jobs(process: &GaussianProcess) -> SimilarityMatrices {
        let (jobs, contexts) = (process.observations.known_jobs.jobs(), &process.observations.contexts);
        let table = |weights: &SimilarityWeights| {
            jobs.iter().flat_map(|one| jobs.iter().map(|other| one.similarity(other, weights))).collect()
        };
        let prior = &process.prior;
        let similarity =
            |one: &SharingContext| contexts.iter().map(|it| it.similarity(one, prior)).collect::<Vec<f64>>();
        SimilarityMatrices {
            jobs: jobs.len(),
            contexts: contexts.len(),
            between_contexts: contexts.iter().flat_map(similarity).collect(),
            sensitivity: table(&prior.sensitivity),
            pressure: table(&prior.pressure),
            partners: table(&prior.partners),
        }
    }

    fn covariance(&self, process: &GaussianProcess, one: &SetMemberRow, other: &SetMemberRow) -> f64 {
        let at = |table: &[f64], row: usize, column: usize| table[row * self.jobs + column];
        let count = (one.partners.len() * other.partners.len()).max(1) as f64;
        let mean = |table: &[f64]| {
            let pairs = one.partners.iter().flat_map(|row| other.partners.iter().map(move |it| (*row, *it)));
            pairs.map(|(row, column)| at(table, row, column)).sum::<f64>() / count
        };
        let context = self.between_contexts[one.context * self.contexts + other.context];
        let alone = at(&self.sensitivity, one.own, other.own) + mean(&self.pressure);
        let both = at(&self.partners, one.own, other.own) * mean(&self.partners);
        process.prior.covariance(context, alone, both)
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
