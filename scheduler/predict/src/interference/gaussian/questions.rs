//! Predictions of a Gaussian process for many sets.
//!
//! A job is compared with all known jobs once, however many sets it is in. What the observations say of it,
//! by itself and as a partner, is summed up once too (`row_table.rs`), so that a prediction for a pair
//! multiplies only these sums. Start with [`Questions::predict`].

use std::collections::BTreeMap;

use cohabit_policy::interference::{ColocationSet, SetMember};

use super::known_jobs::{JobCovariates, Similarity};
use super::process::{GaussianProcess, SharingContext};
use super::row_table::{OwnSums, PartnerSums};
use crate::interference::log_slowdown::LogSlowdown;

/// Questions to one process. They are faster together.
#[derive(Debug)]
pub(super) struct Questions<'p, 's> {
    process: &'p GaussianProcess,
    jobs: Vec<AskedJob<'s>>,
    /// By what tells most jobs apart.
    by_configuration: BTreeMap<(&'s str, Option<u64>), Vec<usize>>,
}

/// A set, with its members as indices of the jobs that were asked about.
#[derive(Debug)]
pub(super) struct AskedSet<'s> {
    set: &'s ColocationSet,
    members: Vec<usize>,
}

impl AskedSet<'_> {
    /// The number of its members.
    pub(super) const fn members(&self) -> usize {
        self.members.len()
    }
}

/// A job, and how similar each known job is to it.
#[derive(Debug)]
struct AskedJob<'s> {
    member: &'s SetMember,
    covariates: JobCovariates,
    /// By the index of the known job.
    pressure: Vec<f64>,
    partners: Vec<f64>,
    own: OwnSums,
    as_only_partner: PartnerSums,
}

impl<'p, 's> Questions<'p, 's> {
    pub(super) const fn new(process: &'p GaussianProcess) -> Questions<'p, 's> {
        Questions { process, jobs: Vec::new(), by_configuration: BTreeMap::new() }
    }

    /// Prepares questions about a set.
    pub(super) fn ask(&mut self, set: &'s ColocationSet) -> AskedSet<'s> {
        AskedSet { set, members: set.members.iter().map(|member| self.index_of(member)).collect() }
    }

    /// The prediction for a member. Its variance is an upper bound, from the closest observation alone.
    pub(super) fn predict(&self, asked: &AskedSet<'_>, member: usize) -> LogSlowdown {
        let partners: Vec<usize> = partners(asked, member).collect();
        self.answer(&self.similar_contexts(&SharingContext::of(asked.set)), asked.members[member], &partners)
    }

    /// The predictions for a member as a pair with each of the others.
    pub(super) fn predict_pairs(&self, asked: &AskedSet<'_>, member: usize) -> Vec<LogSlowdown> {
        let contexts = self.similar_contexts(&SharingContext::of_pair(asked.set));
        let own = asked.members[member];
        partners(asked, member).map(|partner| self.answer(&contexts, own, &[partner])).collect()
    }

    fn index_of(&mut self, member: &'s SetMember) -> usize {
        let alike = self.by_configuration.entry((&member.model, member.batch)).or_default();
        let jobs = &self.jobs;
        if let Some(known) = alike.iter().find(|known| jobs[**known].member == member) {
            return *known;
        }
        alike.push(self.jobs.len());
        let covariates = JobCovariates::of(member);
        let GaussianProcess { prior, table, .. } = self.process;
        let known = self.process.observations().jobs();
        let similar: Vec<Similarity> = known.iter().map(|known| Similarity::of(&covariates, known)).collect();
        let weighed = |weights| similar.iter().map(|it| it.weighed(weights)).collect::<Vec<f64>>();
        let (pressure, partners) = (weighed(&prior.pressure), weighed(&prior.partners));
        self.jobs.push(AskedJob {
            member,
            covariates,
            own: table.own_sums(&weighed(&prior.sensitivity), &partners),
            as_only_partner: table.partner_sums(&pressure, &partners),
            pressure,
            partners,
        });
        self.jobs.len() - 1
    }

    /// The similarity of each known context to this one.
    fn similar_contexts(&self, context: &SharingContext) -> Vec<f64> {
        let known = self.process.observations().contexts().iter();
        known.map(|it| it.similarity(context, &self.process.prior)).collect()
    }

    fn answer(&self, contexts: &[f64], own: usize, partners: &[usize]) -> LogSlowdown {
        let GaussianProcess { prior, table, mean, .. } = self.process;
        let job = &self.jobs[own];
        let (mean, closest) = match partners {
            [partner] => table.compare(contexts, &job.own, &self.jobs[*partner].as_only_partner, prior),
            partners => {
                let pressure = self.mean(partners, |job| &job.pressure);
                let beside = table.partner_sums(&pressure, &self.mean(partners, |job| &job.partners));
                table.compare(contexts, &job.own, &beside, prior)
            }
        }
        .add_to(*mean);
        let open =
            |seen: f64, most: f64| if most > 0.0 { (1.0 - (seen / most).min(1.0)).max(0.0) } else { 0.0 };
        let self_similarity = Similarity::of(&job.covariates, &job.covariates);
        let (pressure, beside) = self.among(partners);
        let sensitivity = self_similarity.weighed(&prior.sensitivity);
        let both = self_similarity.weighed(&prior.partners) * beside;
        let nearest = contexts.iter().copied().fold(0.0, f64::max);
        let variance = prior.noise
            + prior.common * open(nearest, 1.0)
            + sensitivity * open(closest.own, sensitivity)
            + pressure * open(closest.partner, pressure)
            + (prior.pair + prior.pair_on_gpu) * both * open(closest.both, both);
        LogSlowdown { mean, variance }
    }

    /// The mean of a similarity over these partners, for each known job.
    fn mean(&self, partners: &[usize], of: for<'a> fn(&'a AskedJob<'s>) -> &'a [f64]) -> Vec<f64> {
        let mut means = vec![0.0; self.process.observations().jobs().len()];
        for partner in partners {
            means.iter_mut().zip(of(&self.jobs[*partner])).for_each(|(sum, like)| *sum += like);
        }
        let count = partners.len().max(1) as f64;
        means.iter_mut().for_each(|mean| *mean /= count);
        means
    }

    /// How similar partners are among themselves: in their pressure, and in their interactions.
    fn among(&self, partners: &[usize]) -> (f64, f64) {
        let prior = &self.process.prior;
        let (mut pressure, mut beside) = (0.0, 0.0);
        for (one, other) in partners.iter().flat_map(|one| partners.iter().map(move |other| (one, other))) {
            let similarity = Similarity::of(&self.jobs[*one].covariates, &self.jobs[*other].covariates);
            pressure += similarity.weighed(&prior.pressure);
            beside += similarity.weighed(&prior.partners);
        }
        let count = partners.len().max(1) as f64;
        (pressure / (count * count), beside / (count * count))
    }
}

/// The indices of all members but this one.
fn partners(asked: &AskedSet<'_>, member: usize) -> impl Iterator<Item = usize> {
    let members = asked.members.iter().enumerate();
    members.filter(move |(at, _)| *at != member).map(|(_, job)| *job)
}
