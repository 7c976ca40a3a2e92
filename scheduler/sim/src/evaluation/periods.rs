//! Metrics by the time of submission, which tell how a policy does that learns.

use cohabit_types::Span;
use serde::Serialize;

use super::job_result::JobResult;
use super::statistics::mean;

/// The number of periods.
const PERIODS: usize = 10;

/// The jobs of a period.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeriodMetrics {
    /// When the first of them was submitted, in seconds since the first submission of all.
    pub from_s: f64,
    /// Their number.
    pub jobs: usize,
    /// Their mean time from submission to end, in seconds.
    pub mean_jct_s: f64,
    /// The mean of that time over their run time alone at the best placement.
    pub mean_stretch: f64,
    /// The mean time for which they held devices over their run time alone at the best placement.
    pub mean_slowdown: f64,
    /// How often they found no memory left on their device.
    pub out_of_memory: usize,
}

impl PeriodMetrics {
    /// Ten periods with about as many jobs each, in the order of submission. The jobs are in that order.
    #[must_use]
    pub fn of(jobs: &[JobResult]) -> Vec<PeriodMetrics> {
        let Some(first) = jobs.first() else { return Vec::new() };
        let period = |jobs: &[JobResult]| PeriodMetrics {
            from_s: jobs[0].submitted.since(first.submitted).as_secs_f64(),
            jobs: jobs.len(),
            mean_jct_s: mean(jobs.iter().filter_map(JobResult::completion_time).map(Span::as_secs_f64)),
            mean_stretch: mean(jobs.iter().filter_map(|job| over_ideal(job, job.completion_time()?))),
            mean_slowdown: mean(jobs.iter().filter_map(|job| over_ideal(job, job.ran()))),
            out_of_memory: jobs.iter().map(|job| job.out_of_memory).sum(),
        };
        jobs.chunks(jobs.len().div_ceil(PERIODS)).map(period).collect()
    }
}

/// A time of an ended job over its run time alone.
fn over_ideal(job: &JobResult, time: Span) -> Option<f64> {
    let ideal = job.ideal.as_secs_f64();
    (ideal > 0.0 && job.ended.is_some()).then(|| time.as_secs_f64() / ideal)
}

#[cfg(test)]
mod tests {
    use cohabit_types::{JobState, Time};

    use super::*;

    #[test]
    fn each_period_has_a_tenth_of_the_jobs() {
        let at = |secs| Time::EPOCH + Span::from_secs(secs);
        let job = |number: u64| JobResult {
            line: None,
            user: "ada".into(),
            submitted: at(100 + number),
            started: Some(at(200 + number)),
            ended: Some(at(200 + number + 10)),
            state: JobState::Completed,
            devices_milli: 500,
            nodes: vec!["node-0".into()],
            attempts: vec![(at(200 + number), at(200 + number + 10))],
            out_of_memory: usize::from(number == 20),
            ideal: Span::from_secs(5),
            gang_slowdown: None,
        };
        let periods = PeriodMetrics::of(&(0..21).map(job).collect::<Vec<_>>());
        assert_eq!(periods.iter().map(|period| period.jobs).collect::<Vec<_>>(), [3; 7]);
        assert_eq!(periods[1].from_s, 3.0);
        assert_eq!(
            (periods[0].mean_jct_s, periods[0].mean_stretch, periods[0].mean_slowdown),
            (110.0, 22.0, 2.0)
        );
        assert_eq!((periods[0].out_of_memory, periods[6].out_of_memory), (0, 1));
        assert_eq!(PeriodMetrics::of(&[]), []);
    }
}
