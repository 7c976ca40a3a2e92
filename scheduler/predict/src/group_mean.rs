//! The estimator that uses the mean of all earlier jobs of a group: a baseline for experiments.
//!
//! It forgets nothing, so it is not for a head that runs for a long time.

use std::collections::BTreeMap;

use cohabit_policy::{CompletedRun, Estimator, JobFeatures};
use cohabit_types::{Estimate, Span};

use crate::quantity::Quantity;

/// The mean of all jobs of the same user and group; of all jobs if there were none.
#[derive(Debug, Default, Clone)]
pub struct GroupMean {
    groups: BTreeMap<(String, String), Sums>,
    all: Sums,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    runtime: Mean,
    iterations: Mean,
}

#[derive(Debug, Default, Clone, Copy)]
struct Mean {
    sum: f64,
    count: u64,
}

impl Estimator for GroupMean {
    fn estimate(&self, job: &JobFeatures) -> Option<Estimate> {
        let (sums, source) = match self.groups.get(&(job.user.clone(), job.group.clone())) {
            Some(sums) => (sums, format!("jobs of '{}' by {}", job.group, job.user)),
            None => (&self.all, "jobs".to_owned()),
        };
        let Some(runtime) = sums.runtime.value() else { return job.user_estimate() };
        Some(Estimate {
            iterations: job.iterations.or_else(|| Some(sums.iterations.value()?.round().max(1.0) as u64)),
            runtime: Some(Span::from_secs_f64(runtime)),
            basis: format!("the mean of all {source}"),
            ..Estimate::default()
        })
    }

    fn learn(&mut self, done: &[CompletedRun]) {
        for job in done {
            let group = (job.features.user.clone(), job.features.group.clone());
            self.groups.entry(group).or_default().add(job);
            self.all.add(job);
        }
    }
}

impl Sums {
    fn add(&mut self, job: &CompletedRun) {
        self.runtime.add(Quantity::Runtime.observed_value(job));
        self.iterations.add(Quantity::Iterations.observed_value(job));
    }
}

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        self.sum += value.unwrap_or(0.0);
        self.count += u64::from(value.is_some());
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::Time;

    use super::*;

    fn job(group: &str) -> JobFeatures {
        JobFeatures { user: "ada".into(), group: group.into(), ..JobFeatures::default() }
    }

    fn ran(group: &str, secs: u64, iterations: Option<u64>) -> CompletedRun {
        let runtime = Span::from_secs(secs);
        CompletedRun { features: job(group), ended_at: Time::EPOCH, runtime, iterations }
    }

    #[test]
    fn a_known_group_gets_its_mean_and_a_new_one_the_mean_of_all() {
        let mut estimator = GroupMean::default();
        assert_eq!(estimator.estimate(&job("a")), None);
        estimator.learn(&[ran("a", 10, Some(4)), ran("a", 20, None), ran("b", 60, Some(8))]);
        let predicted = |group| {
            let estimate = estimator.estimate(&job(group)).unwrap();
            (estimate.runtime.unwrap().as_secs_f64(), estimate.iterations, estimate.basis)
        };
        assert_eq!(predicted("a"), (15.0, Some(4), "the mean of all jobs of 'a' by ada".to_owned()));
        assert_eq!(predicted("c"), (30.0, Some(6), "the mean of all jobs".to_owned()));
    }
}
