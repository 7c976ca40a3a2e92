//! What is expected of a job when it is submitted, learned from the jobs that ended.
//!
//! An estimate enters the journal with its submission, so a replay needs no estimator. A user's own figures
//! are never replaced.

use cohabit_proto::{JobRecord, JobState, Submit};
use cohabit_scheduler::{Estimator, Features, Finished};

/// How many of the newest jobs in the history are learned from at a start.
pub(crate) const NEWEST: u32 = 5_000;

/// The estimator in use.
pub(crate) struct Estimates {
    estimator: Box<dyn Estimator>,
}

impl Estimates {
    /// Estimates learned from these jobs, the oldest first.
    pub(crate) fn learned_from(past: &[JobRecord]) -> Estimates {
        let mut estimates = Estimates { estimator: estimator() };
        estimates.learn(past);
        estimates
    }

    /// Notes what is expected of the job, where there is ground for it.
    pub(crate) fn fill(&self, user: &str, submit: &mut Submit) {
        submit.estimate = self.estimator.estimate(&Features::of(user, &submit.spec));
    }

    /// Learns from jobs that ended, the oldest first.
    pub(crate) fn learn(&mut self, ended: &[JobRecord]) {
        let done: Vec<Finished> = ended.iter().filter_map(finished).collect();
        self.estimator.learn(&done);
    }
}

#[cfg(feature = "learned")]
fn estimator() -> Box<dyn Estimator> {
    Box::new(cohabit_predict::RecentMedian::default())
}

#[cfg(not(feature = "learned"))]
fn estimator() -> Box<dyn Estimator> {
    Box::new(cohabit_scheduler::NoEstimates)
}

/// What a job took, if it ended well and really ran.
fn finished(record: &JobRecord) -> Option<Finished> {
    if record.state != JobState::Completed {
        return None;
    }
    let attempt = record.latest()?;
    let per_node = u64::from(record.demand.devices()) * u64::from(record.demand.share().0);
    let features = Features {
        user: record.user.clone(),
        group: record.group.clone().unwrap_or_else(|| record.name.clone()),
        devices_milli: per_node * u64::from(record.demand.nodes),
        iterations: record.predicted.as_ref().and_then(|predicted| predicted.iterations),
    };
    Some(Finished {
        features,
        runtime: attempt.ended_at?.since(attempt.started_at),
        iterations: record.progress.as_ref().map(|progress| progress.step),
    })
}
