//! How good an estimator would have been: jobs of the past are submitted and end again, in the order in
//! which they did.
//!
//! Each job is estimated with what had ended when it was submitted, and never learned from before it ends.

use std::collections::BTreeSet;
use std::iter::Peekable;

use cohabit_policy::{Estimator, Features, Finished};
use cohabit_types::Time;

use crate::accuracy::{Accuracy, Recurrence, Tally};
use crate::quantity::Quantity;

/// Replays jobs through an estimator and compares this quantity with what it said at their submission.
///
/// A job that ended at the moment of a submission had ended before it. Jobs that do not tell the quantity are
/// learned from, but not counted.
pub fn rolling(estimator: &mut dyn Estimator, jobs: &[Finished], quantity: Quantity) -> Accuracy {
    let mut submissions: Vec<&Finished> = jobs.iter().collect();
    submissions.sort_by_key(|job| job.features.submitted_at);
    let mut ends: Vec<&Finished> = jobs.iter().collect();
    ends.sort_by_key(|job| job.ended_at);
    let (mut ends, mut groups, mut tally) =
        (ends.into_iter().peekable(), Groups::default(), Tally::default());
    for job in submissions {
        let ended = ended_by(&mut ends, job.features.submitted_at);
        groups.note(&ended);
        estimator.learn(&ended);
        if let Some(truth) = quantity.of_job(job) {
            let estimate = estimator.estimate(&unaided(&job.features, quantity));
            let estimated = estimate.and_then(|it| quantity.of_estimate(&it));
            tally.note(groups.recurrence(&job.features), estimated, truth);
        }
    }
    tally.accuracy()
}

fn ended_by<'a>(ends: &mut Peekable<impl Iterator<Item = &'a Finished>>, moment: Time) -> Vec<Finished> {
    std::iter::from_fn(|| ends.next_if(|end| end.ended_at <= moment).cloned()).collect()
}

/// Without the answer: what a user tells is no achievement of the estimator.
fn unaided(job: &Features, quantity: Quantity) -> Features {
    let iterations = match quantity {
        Quantity::Runtime => job.iterations,
        Quantity::Iterations => None,
    };
    Features { iterations, ..job.clone() }
}

/// Users with the groups of which a job had ended.
#[derive(Default)]
struct Groups(BTreeSet<(String, String)>);

impl Groups {
    fn note(&mut self, ended: &[Finished]) {
        self.0.extend(ended.iter().map(|job| (job.features.user.clone(), job.features.group.clone())));
    }

    fn recurrence(&self, job: &Features) -> Recurrence {
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

    /// Writes down what it hears, and expects the runtime of the last job that it learned from.
    #[derive(Default)]
    struct Diary {
        last: Option<Span>,
        learned: Vec<String>,
    }

    impl Estimator for Diary {
        fn estimate(&self, job: &Features) -> Option<Estimate> {
            Some(Estimate { iterations: job.iterations, runtime: self.last, ..Estimate::default() })
        }

        fn learn(&mut self, done: &[Finished]) {
            self.last = done.last().map(|job| job.runtime).or(self.last);
            self.learned.extend(done.iter().map(|job| job.features.group.clone()));
        }
    }

    fn ran(group: &str, from: u64, until: u64) -> Finished {
        let at = |secs| Time::EPOCH + Span::from_secs(secs);
        let features = Features { group: group.into(), submitted_at: at(from), ..Features::default() };
        let told = Features { iterations: Some(7), ..features };
        Finished {
            ended_at: at(until),
            runtime: Span::from_secs(until - from),
            iterations: Some(7),
            features: told,
        }
    }

    #[test]
    fn a_job_is_estimated_with_what_had_ended_when_it_was_submitted() {
        let jobs = [ran("late", 30, 50), ran("long", 0, 100), ran("short", 10, 30), ran("short", 40, 60)];
        let mut diary = Diary::default();
        let accuracy = rolling(&mut diary, &jobs, Quantity::Runtime);
        assert_eq!(diary.learned, ["short"]);
        assert_eq!((accuracy.first_seen.jobs, accuracy.first_seen.estimated), (3, 1));
        assert_eq!(accuracy.recurring.errors.unwrap().mape, 0.0);
        assert_eq!((accuracy.all.jobs, accuracy.all.estimated), (4, 2));
    }

    #[test]
    fn the_answer_is_hidden_from_the_estimator() {
        let jobs = [ran("a", 0, 10), ran("a", 20, 30)];
        assert_eq!(rolling(&mut Diary::default(), &jobs, Quantity::Iterations).all.estimated, 0);
    }
}
