//! What is expected of a job when it is submitted, learned from the jobs that ended.
//!
//! An estimate enters the journal with its submission, so a replay needs no estimator. A user's own figures
//! are never replaced.

#[cfg(feature = "learned")]
mod learned;
#[cfg(test)]
mod tests;
#[cfg(not(feature = "learned"))]
mod unlearned;

use cohabit_policy::{CompletedRun, JobFeatures};
use cohabit_types::{JobRecord, JobState, Submit, Time};

#[cfg(feature = "learned")]
use learned::EstimateSource;
#[cfg(not(feature = "learned"))]
use unlearned::EstimateSource;

/// How many of the newest jobs in the history are learned from at a start.
pub(crate) const MAX_TRAINING_JOBS: u32 = 20_000;

/// What estimates come from.
pub(crate) struct Estimates {
    source: EstimateSource,
}

impl Estimates {
    /// Estimates learned from these jobs, the oldest first; may take a second.
    pub(crate) fn learned_from(past: &[JobRecord]) -> Estimates {
        Estimates { source: EstimateSource::learned_from(&all_finished(past)) }
    }

    /// Notes what is expected of the job, where there is ground for it.
    pub(crate) fn fill(&mut self, user: &str, submit: &mut Submit, now: Time) {
        submit.estimate = self.source.estimate(&JobFeatures::of(user, &submit.spec, now));
    }

    /// Learns from jobs that ended, the oldest first. What takes long is done elsewhere.
    pub(crate) fn learn(&mut self, ended: &[JobRecord]) {
        self.source.learn(&all_finished(ended));
    }
}

fn all_finished(records: &[JobRecord]) -> Vec<CompletedRun> {
    records.iter().filter_map(finished).collect()
}

/// What a job took, if it ended well and really ran.
fn finished(record: &JobRecord) -> Option<CompletedRun> {
    if record.state != JobState::Completed {
        return None;
    }
    let attempt = record.latest()?;
    let ended_at = attempt.ended_at?;
    Some(CompletedRun {
        features: JobFeatures::from_record(record),
        ended_at,
        runtime: ended_at.since(attempt.started_at),
        iterations: record.progress.as_ref().map(|progress| progress.step),
    })
}
