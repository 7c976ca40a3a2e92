//! The sharing incentive: whether jobs are done no later than they would be without sharing.
//!
//! The same policy runs the same jobs a second time, each with its devices for itself, and every job is
//! compared with its own completion in that schedule. Sharing moves all later decisions of a policy, so some
//! jobs end earlier and some later even where sharing helps everybody; the tolerance keeps small moves out of
//! the count. How many remain by chance is told by a third schedule: without sharing too, and with the same
//! jobs submitted a moment apart.

use cohabit_types::Span;
use serde::{Deserialize, Serialize};

use super::job_result::JobResult;
use super::statistics::mean;

/// A job counts as later if it is late by more than this fraction of its completion time without sharing
const RELATIVE_TOLERANCE: f64 = 0.01;
/// and this time: two starts of a process, or one back-off of a job that found no memory.
const TOLERANCE: Span = Span::from_secs(60);

/// How many jobs are done later than without sharing, and by how much.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SharingIncentive {
    /// Jobs that ended in both schedules.
    pub compared: usize,
    /// Fraction of these that are done later by more than 1% of their completion time without sharing and a
    /// minute.
    pub later: f64,
    /// Fraction that is done later by any time.
    pub later_at_all: f64,
    /// The largest delay of a job that is later beyond the tolerance, divided by its completion time without
    /// sharing.
    pub largest_delay: f64,
    /// The mean of these relative delays over the jobs that are later beyond the tolerance.
    pub mean_delay: f64,
    /// Fraction that is later beyond the tolerance without sharing, only because some jobs are submitted a
    /// moment later.
    pub later_by_chance: f64,
}

impl SharingIncentive {
    /// Compares the jobs of three evaluations that had the same jobs in the same order: one in which jobs may
    /// share devices, one in which none may, and another of these in which some were submitted later.
    #[must_use]
    pub fn of(shared: &[JobResult], exclusive: &[JobResult], nudged: &[JobResult]) -> SharingIncentive {
        let later_by_chance = SharingIncentive::compare(nudged, exclusive).later;
        SharingIncentive { later_by_chance, ..SharingIncentive::compare(shared, exclusive) }
    }

    fn compare(shared: &[JobResult], exclusive: &[JobResult]) -> SharingIncentive {
        let both = shared.iter().zip(exclusive);
        let pairs: Vec<(f64, f64)> = both.filter_map(|(shared, alone)| completions(shared, alone)).collect();
        let late = |(shared, alone): &&(f64, f64)| {
            shared - alone > RELATIVE_TOLERANCE * alone + TOLERANCE.as_secs_f64()
        };
        let delays: Vec<f64> =
            pairs.iter().filter(late).map(|(shared, alone)| (shared - alone) / alone.max(1e-9)).collect();
        let fraction = |count: usize| count as f64 / pairs.len().max(1) as f64;
        SharingIncentive {
            compared: pairs.len(),
            later: fraction(delays.len()),
            later_at_all: fraction(pairs.iter().filter(|(shared, alone)| shared > alone).count()),
            largest_delay: delays.iter().copied().fold(0.0, f64::max),
            mean_delay: mean(delays),
            later_by_chance: 0.0,
        }
    }
}

/// The completion times of a job in both schedules, in seconds.
fn completions(shared: &JobResult, alone: &JobResult) -> Option<(f64, f64)> {
    Some((shared.completion_time()?.as_secs_f64(), alone.completion_time()?.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use cohabit_types::{JobState, Time};

    use super::*;

    fn done_after(millis: Option<u64>) -> JobResult {
        let submitted = Time::EPOCH + Span::from_secs(50);
        JobResult {
            line: None,
            user: "ada".into(),
            submitted,
            started: None,
            ended: millis.map(|millis| submitted + Span::from_millis(millis)),
            state: JobState::Completed,
            devices_milli: 500,
            nodes: vec!["node-0".into()],
            attempts: Vec::new(),
            out_of_memory: 0,
            ideal: Span::ZERO,
            gang_slowdown: None,
        }
    }

    #[test]
    fn jobs_are_later_only_beyond_one_percent_and_a_minute() {
        let alone = [1_000_000, 1_000_000, 1_000_000, 1_000_000, 60_000].map(|it| done_after(Some(it)));
        let nudged = [1_000_000, 990_000, 1_071_000, 1_000_000, 60_000].map(|it| done_after(Some(it)));
        let shared = [900_000, 1_070_000, 1_070_001, 1_500_000, 60_000].map(|it| done_after(Some(it)));
        let incentive = SharingIncentive::of(&shared, &alone, &nudged);
        assert_eq!((incentive.compared, incentive.later, incentive.later_at_all), (5, 0.4, 0.6));
        assert_eq!(incentive.later_by_chance, 0.2);
        assert!((incentive.largest_delay - 0.5).abs() < 1e-12, "{incentive:?}");
        assert!((incentive.mean_delay - (0.070_001 + 0.5) / 2.0).abs() < 1e-9, "{incentive:?}");
    }

    #[test]
    fn a_job_that_did_not_end_in_both_schedules_is_not_compared() {
        let (ended, running) = (done_after(Some(5)), done_after(None));
        let incentive =
            SharingIncentive::of(&[ended.clone(), running.clone()], &[running, ended.clone()], &[ended]);
        assert_eq!(incentive, SharingIncentive::default());
    }
}
