//! Jobs of the trace that runs leave out, and jobs that ended without being completed, with the reasons.

use std::collections::BTreeMap;

use cohabit_sim::JobResult;
use cohabit_sim::trace::ExceedingJobs;
use cohabit_sim::workload::SkippedJobs;
use cohabit_types::JobState;
use serde::Serialize;

/// Numbers of jobs that are left out, each for one reason.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct LeftOutJobs {
    /// Rows of the trace that are no valid job.
    pub(super) invalid_rows: usize,
    /// Jobs that run longer than --max-duration.
    pub(super) too_long: usize,
    /// Jobs that have more GPUs than --max-gpus.
    pub(super) too_many_gpus: usize,
    /// Jobs before --skip.
    pub(super) skipped: usize,
    /// Jobs behind --limit, or between windows.
    pub(super) beyond_limit: usize,
    /// Jobs that need more GPUs than the cluster has.
    pub(super) too_wide: usize,
    /// Jobs that need more GPU memory than the GPUs of the cluster have.
    pub(super) too_large: usize,
}

impl LeftOutJobs {
    /// What is left out before a part of the trace is taken.
    pub(super) fn of_trace(invalid_rows: usize, exceeding: ExceedingJobs) -> LeftOutJobs {
        let ExceedingJobs { too_long, too_many_gpus } = exceeding;
        LeftOutJobs { invalid_rows, too_long, too_many_gpus, ..LeftOutJobs::default() }
    }

    /// With those that the cluster can never run.
    pub(super) const fn with_unrunnable(
        self,
        SkippedJobs { too_wide, too_large }: SkippedJobs,
    ) -> LeftOutJobs {
        LeftOutJobs { too_wide, too_large, ..self }
    }

    /// The number of all of them.
    pub(super) fn total(&self) -> usize {
        self.by_reason().iter().map(|(count, _)| count).sum()
    }

    /// The numbers above zero, each with its reason.
    pub(super) fn reasons(&self) -> Vec<(usize, &'static str)> {
        self.by_reason().into_iter().filter(|(count, _)| *count > 0).collect()
    }

    const fn by_reason(&self) -> [(usize, &'static str); 7] {
        [
            (self.invalid_rows, "invalid rows of the trace (--strict stops at the first)"),
            (self.too_long, "longer than --max-duration"),
            (self.too_many_gpus, "on more GPUs than --max-gpus"),
            (self.skipped, "before --skip"),
            (self.beyond_limit, "behind --limit, or between --windows"),
            (self.too_wide, "need more GPUs than the cluster has"),
            (self.too_large, "need more GPU memory than the cluster's GPUs have"),
        ]
    }
}

/// How many jobs of a run ended in another state than completed, by state.
pub(super) fn not_completed(jobs: &[JobResult]) -> BTreeMap<String, usize> {
    let mut states = BTreeMap::new();
    for job in jobs.iter().filter(|job| job.state != JobState::Completed) {
        *states.entry(job.state.to_string()).or_default() += 1;
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_sentence_and_adds_to_the_total() {
        let trace = LeftOutJobs::of_trace(1, ExceedingJobs { too_long: 2, too_many_gpus: 4 });
        let all = LeftOutJobs { skipped: 8, beyond_limit: 16, ..trace }
            .with_unrunnable(SkippedJobs { too_wide: 32, too_large: 64 });
        assert_eq!(all.total(), 127);
        let counts: Vec<usize> = all.reasons().iter().map(|(count, _)| *count).collect();
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(LeftOutJobs::default().reasons(), []);
    }
}
