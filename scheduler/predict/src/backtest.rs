//! Backtests an estimator: past jobs are submitted and end again in their original order.
//!
//! Each job is estimated from what had ended when it was submitted, and never learned from before it ends.

use std::collections::BTreeSet;
use std::iter::Peekable;

use cohabit_policy::{CompletedRun, Estimator, JobFeatures};
use cohabit_types::Time;

use crate::accuracy::{Accuracy, AccuracyAccumulator, Recurrence};
use crate::quantity::Quantity;

/// Replays jobs through an estimator and compares its estimates at submission with this quantity.
///
/// A job that ended at the time of a submission had ended before it. Jobs that do not state the quantity are
/// learned from but not counted.
pub fn backtest(estimator: &mut dyn Estimator, jobs: &[CompletedRun], quantity: Quantity) -> Accuracy {
    let mut submissions: Vec<&CompletedRun> = jobs.iter().collect();
    submissions.sort_by_key(|job| job.features.submitted_at);
    let mut ends: Vec<&CompletedRun> = jobs.iter().collect();
    ends.sort_by_key(|job| job.ended_at);
    let (mut ends, mut groups, mut accumulator) =
        (ends.into_iter().peekable(), Groups::default(), AccuracyAccumulator::default());
    for job in submissions {
        let ended = ended_by(&mut ends, job.features.submitted_at);
        groups.note(&ended);
        estimator.learn(&ended);
        if let Some(truth) = quantity.observed_value(job) {
            let estimate = estimator.estimate(&without_answer(&job.features, quantity));
            let estimated = estimate.and_then(|it| quantity.estimated_value(&it));
            accumulator.note(groups.recurrence(&job.features), estimated, truth);
        }
    }
    accumulator.accuracy()
}

fn ended_by<'a>(
    ends: &mut Peekable<impl Iterator<Item = &'a CompletedRun>>,
    moment: Time,
) -> Vec<CompletedRun> {
    std::iter::from_fn(|| ends.next_if(|end| end.ended_at <= moment).cloned()).collect()
}

/// The features without the answer: what a user states is no achievement of the estimator.
fn without_answer(job: &JobFeatures, quantity: Quantity) -> JobFeatures {
    let iterations = match quantity {
        Quantity::Runtime => job.iterations,
        Quantity::Iterations => None,
    };
    JobFeatures { iterations, ..job.clone() }
}

/// Users with the groups of which a job had ended.
#[derive(Default)]
struct Groups(BTreeSet<(String, String)>);

impl Groups {
    fn note(&mut self, ended: &[CompletedRun]) {
        self.0.extend(ended.iter().map(|job| (job.features.user.clone(), job.features.group.clone())));
    }

    fn recurrence(&self, job: &JobFeatures) -> Recurrence {
        match self.0.contains(&(job.user.clone(), job.group.clone())) {
            true => Recurrence::Recurring,
            false => Recurrence::FirstSeen,
        }
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Estimate, Span};

    use super::*;

    /// Records what it learns from, and estimates the run time of the last job that it learned from.
    #[derive(Default)]
    struct RecordingEstimator {
        last: Option<Span>,
        learned: Vec<String>,
    }

    impl Estimator for RecordingEstimator {
        fn estimate(&self, job: &JobFeatures) -> Option<Estimate> {
            Some(Estimate { iterations: job.iterations, runtime: self.last, ..Estimate::default() })
        }

        fn learn(&mut self, done: &[CompletedRun]) {
            self.last = done.last().map(|job| job.runtime).or(self.last);
            self.learned.extend(done.iter().map(|job| job.features.group.clone()));
        }
    }

    fn ran(group: &str, from: u64, until: u64) -> CompletedRun {
        let at = |secs| Time::EPOCH + Span::from_secs(secs);
        let features = JobFeatures { group: group.into(), submitted_at: at(from), ..JobFeatures::default() };
        let stated = JobFeatures { iterations: Some(7), ..features };
        CompletedRun {
            ended_at: at(until),
            runtime: Span::from_secs(until - from),
            iterations: Some(7),
            features: stated,
        }
    }

    #[test]
    fn estimates_use_only_jobs_that_had_ended_at_submission() {
        let jobs = [ran("late", 30, 50), ran("long", 0, 100), ran("short", 10, 30), ran("short", 40, 60)];
        let mut recorder = RecordingEstimator::default();
        let accuracy = backtest(&mut recorder, &jobs, Quantity::Runtime);
        assert_eq!(recorder.learned, ["short"]);
        assert_eq!((accuracy.first_seen.jobs, accuracy.first_seen.estimated), (3, 1));
        assert_eq!(accuracy.recurring.errors.unwrap().mape, 0.0);
        assert_eq!((accuracy.all.jobs, accuracy.all.estimated), (4, 2));
    }

    #[test]
    fn the_answer_is_hidden_from_the_estimator() {
        let jobs = [ran("a", 0, 10), ran("a", 20, 30)];
        assert_eq!(
            backtest(&mut RecordingEstimator::default(), &jobs, Quantity::Iterations).all.estimated,
            0
        );
    }
}
