//! The estimator that needs no training: recurring jobs run about as long as the last ones did.
//!
//! On the Philly trace the median of the last twenty jobs of the same class is within a factor of two for 63%
//! of the jobs, and the median of all of them for 49%: recent jobs matter more than all history.

use std::collections::{BTreeMap, VecDeque};

use cohabit_policy::{CompletedRun, Estimator, JobFeatures};
use cohabit_types::{Estimate, Span};

use crate::basis;
use crate::cohort_statistics::{MIN_OF_KIND, MatchLevel};
use crate::median::median;

/// The number of past jobs of a class that are remembered.
const WINDOW: usize = 20;

/// The median of the last jobs of the same user, group and size that train the same; of all these, where too
/// few did.
#[derive(Debug, Default, Clone)]
pub struct RecentMedian {
    past: BTreeMap<JobClass, VecDeque<PastRun>>,
}

/// User, group, size in thousandths of a device, and model and batch size where these count.
type JobClass = (String, String, u64, Option<Training>);
/// Model and batch size.
type Training = (Option<String>, Option<u64>);
/// Run time, and the steps that the job reported.
type PastRun = (Span, Option<u64>);

impl Estimator for RecentMedian {
    fn estimate(&self, job: &JobFeatures) -> Option<Estimate> {
        let kind = self.past.get(&kind(job)).filter(|past| past.len() as u64 >= MIN_OF_KIND);
        let (match_level, past) = match (kind, self.past.get(&group(job))) {
            (Some(past), _) => (MatchLevel::Kind, past),
            (None, Some(past)) => (MatchLevel::GroupDevices, past),
            (None, None) => return job.user_estimate(),
        };
        let steps: Vec<u64> = past.iter().filter_map(|(_, iterations)| *iterations).collect();
        Some(Estimate {
            iterations: job.iterations.or_else(|| median(steps)),
            runtime: median(past.iter().map(|(runtime, _)| *runtime).collect()),
            basis: basis::median(match_level, past.len(), job),
            ..Estimate::default()
        })
    }

    fn learn(&mut self, done: &[CompletedRun]) {
        for finished in done {
            let job = &finished.features;
            let stated = job.model.is_some() || job.batch_size.is_some();
            for class in [Some(group(job)), stated.then(|| kind(job))].into_iter().flatten() {
                let past = self.past.entry(class).or_default();
                past.push_back((finished.runtime, finished.iterations));
                if past.len() > WINDOW {
                    past.pop_front();
                }
            }
        }
    }
}

fn group(job: &JobFeatures) -> JobClass {
    (job.user.clone(), job.group.clone(), job.devices_milli, None)
}

fn kind(job: &JobFeatures) -> JobClass {
    let training = (job.model.clone(), job.batch_size);
    (job.user.clone(), job.group.clone(), job.devices_milli, Some(training))
}

#[cfg(test)]
mod tests {
    use cohabit_types::Time;

    use super::*;

    fn job(group: &str) -> JobFeatures {
        JobFeatures {
            user: "ada".into(),
            group: group.into(),
            devices_milli: 1_000,
            ..JobFeatures::default()
        }
    }

    fn ran(group: &str, secs: u64) -> CompletedRun {
        CompletedRun {
            features: job(group),
            ended_at: Time::EPOCH,
            runtime: Span::from_secs(secs),
            iterations: Some(secs * 10),
        }
    }

    #[test]
    fn only_recent_jobs_of_the_same_class_count() {
        let mut estimator = RecentMedian::default();
        assert_eq!(estimator.estimate(&job("a")), None);
        estimator.learn(&(0..20).map(|_| ran("a", 1_000)).collect::<Vec<_>>());
        estimator.learn(&(0..20).map(|n| ran("a", 100 + n)).collect::<Vec<_>>());
        estimator.learn(&[ran("b", 7)]);
        let estimate = estimator.estimate(&job("a")).unwrap();
        assert_eq!(estimate.runtime, Some(Span::from_secs(109)));
        assert_eq!(estimate.iterations, Some(1_090));
    }

    #[test]
    fn jobs_that_train_the_same_count_alone_once_there_are_a_few() {
        let mut estimator = RecentMedian::default();
        let trains = |model: &str| JobFeatures { model: Some(model.into()), ..job("a") };
        let ran = |model, secs| CompletedRun { features: trains(model), ..ran("a", secs) };
        estimator.learn(&[ran("bert", 900), ran("resnet", 10), ran("resnet", 10), ran("resnet", 10)]);
        let seconds = |model| estimator.estimate(&trains(model)).unwrap().runtime.unwrap().as_secs_f64();
        assert_eq!((seconds("resnet"), seconds("bert"), seconds("vgg")), (10.0, 10.0, 10.0));
        estimator.learn(&[ran("bert", 900), ran("bert", 900)]);
        let seconds = |model| estimator.estimate(&trains(model)).unwrap().runtime.unwrap().as_secs_f64();
        assert_eq!((seconds("resnet"), seconds("bert")), (10.0, 900.0));
    }
}
