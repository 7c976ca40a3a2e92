//! Estimates of a job's runtime and iterations at its submission, learned from the jobs that ended.
//!
//! An estimate enters the journal with the submission, so a replay needs no estimator. Figures that the
//! user gives are never replaced. `forest.rs` needs the feature `learned`; `no_forest.rs` replaces it
//! without.

#[cfg(feature = "learned")]
mod forest;
#[cfg(not(feature = "learned"))]
mod no_forest;
#[cfg(test)]
mod tests;

use cohabit_policy::{CompletedRun, JobFeatures, PastRuns};
use cohabit_types::{JobRecord, Submit, Time};

#[cfg(feature = "learned")]
use forest::EstimateSource;
#[cfg(not(feature = "learned"))]
use no_forest::EstimateSource;

/// How many of the newest jobs of the history a start learns from.
pub(crate) const MAX_TRAINING_JOBS: u32 = 20_000;

/// Estimates jobs.
pub(crate) struct Estimates {
    source: EstimateSource,
    /// What people are told of run times.
    past_runs: PastRuns,
}

impl Estimates {
    /// Learns from these jobs, the oldest first; may take a second.
    pub(crate) fn learned_from(past: &[JobRecord]) -> Estimates {
        let completed = all_completed(past);
        let mut past_runs = PastRuns::default();
        past_runs.learn(&completed);
        Estimates { source: EstimateSource::learned_from(&completed), past_runs }
    }

    /// The run times of the newest jobs of each kind.
    pub(crate) const fn past_runs(&self) -> &PastRuns {
        &self.past_runs
    }

    /// Sets the estimate of the job, if there is one.
    pub(crate) fn fill(&mut self, user: &str, submit: &mut Submit, now: Time) {
        submit.estimate = self.source.estimate(&JobFeatures::of(user, &submit.spec, now));
    }

    /// Learns from jobs that ended, the oldest first. A fit that takes long runs on a thread of its own.
    pub(crate) fn learn(&mut self, ended: &[JobRecord]) {
        let completed = all_completed(ended);
        self.past_runs.learn(&completed);
        self.source.learn(&completed);
    }
}

fn all_completed(records: &[JobRecord]) -> Vec<CompletedRun> {
    records.iter().filter_map(CompletedRun::of).collect()
}
