//! Waiting jobs and busy devices over time.
//!
//! Long evaluations are averaged over equal buckets, so that a chart has no more points than can be seen.

use cohabit_types::{Span, Time};

use super::job_result::JobResult;

/// The number of buckets.
const MAX_POINTS: u64 = 1_000;

/// Two step functions; each point holds until the next.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Series {
    /// Jobs that were submitted and held no devices.
    pub queued: Vec<(Time, u64)>,
    /// Devices that jobs held.
    pub busy: Vec<(Time, u64)>,
}

impl Series {
    pub(super) fn of(jobs: &[JobResult]) -> Series {
        let first = jobs.iter().map(|job| job.submitted).min().unwrap_or(Time::EPOCH);
        let last = jobs.iter().filter_map(|job| job.ended).max().unwrap_or(first);
        let (mut queued, mut busy) = (Curve::new(first, last), Curve::new(first, last));
        for job in jobs {
            let mut since = job.submitted;
            for (started, ended) in &job.attempts {
                queued.add(since, *started, 1_000);
                busy.add(*started, *ended, job.devices_milli);
                since = *ended;
            }
        }
        Series { queued: queued.points(), busy: busy.points() }
    }
}

/// The sum in each bucket, in thousandths times microseconds.
struct Curve {
    first: Time,
    bucket: u64,
    sums: Vec<u128>,
}

impl Curve {
    fn new(first: Time, last: Time) -> Curve {
        let length = last.since(first).as_micros();
        let bucket = length.div_ceil(MAX_POINTS).max(1);
        Curve { first, bucket, sums: vec![0; length.div_ceil(bucket) as usize] }
    }

    fn add(&mut self, from: Time, to: Time, milli: u64) {
        let (from, to) = (from.since(self.first).as_micros(), to.since(self.first).as_micros());
        let mut at = from;
        while at < to {
            let place = at / self.bucket;
            let until = ((place + 1) * self.bucket).min(to);
            if let Some(sum) = self.sums.get_mut(place as usize) {
                *sum += u128::from(until - at) * u128::from(milli);
            }
            at = until;
        }
    }

    /// The mean of each bucket, rounded; 0 at the end.
    fn points(&self) -> Vec<(Time, u64)> {
        let at = |place: usize| self.first + Span::from_micros(place as u64 * self.bucket);
        let whole = u128::from(self.bucket) * 1_000;
        let mean = |sum: &u128| ((sum + whole / 2) / whole) as u64;
        let points = self.sums.iter().enumerate().map(|(place, sum)| (at(place), mean(sum)));
        points.chain([(at(self.sums.len()), 0)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cohabit_types::JobState;

    fn at(secs: u64) -> Time {
        Time::EPOCH + Span::from_secs(secs)
    }

    fn job(submitted: u64, attempts: &[(u64, u64)], devices_milli: u64) -> JobResult {
        JobResult {
            line: None,
            user: "ada".into(),
            submitted: at(submitted),
            started: None,
            ended: attempts.last().map(|(_, ended)| at(*ended)),
            state: JobState::Completed,
            devices_milli,
            nodes: vec!["node-0".into()],
            attempts: attempts.iter().map(|(from, to)| (at(*from), at(*to))).collect(),
            out_of_memory: 0,
            ideal: Span::ZERO,
            gang_slowdown: None,
        }
    }

    fn value(curve: &[(Time, u64)], secs: u64) -> u64 {
        curve[curve.partition_point(|(since, _)| *since <= at(secs)) - 1].1
    }

    #[test]
    fn a_preempted_job_waits_twice() {
        let series = Series::of(&[job(0, &[(1_000, 2_000), (3_000, 5_000)], 4_000)]);
        let queued: Vec<u64> = [500, 1_500, 2_500, 4_000].map(|secs| value(&series.queued, secs)).into();
        let busy: Vec<u64> = [500, 1_500, 2_500, 4_000].map(|secs| value(&series.busy, secs)).into();
        assert_eq!((queued, busy), (vec![1, 0, 1, 0], vec![0, 4, 0, 4]));
        assert_eq!(series.busy.last(), Some(&(at(5_000), 0)));
    }

    #[test]
    fn the_number_of_points_is_bounded() {
        let jobs: Vec<JobResult> = (0..5_000).map(|n| job(n, &[(n + 1, n + 100)], 500)).collect();
        let series = Series::of(&jobs);
        assert!(series.busy.len() <= 2_000 && series.queued.len() == series.busy.len());
        assert_eq!(value(&series.busy, 2_500), 50, "99 jobs at a time hold half a device each");
    }
}
