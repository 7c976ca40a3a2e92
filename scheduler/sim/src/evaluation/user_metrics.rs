//! Metrics of each user, which tell who pays for what a policy gains.

use std::collections::BTreeMap;

use cohabit_types::{JobState, Span};
use serde::Serialize;

use super::job_result::JobResult;
use super::statistics::{mean, percentile};

/// The jobs of a user. Waits and JCTs are those of ended jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UserMetrics {
    /// The user.
    pub user: String,
    /// Number of jobs.
    pub jobs: usize,
    /// Number of completed jobs.
    pub completed: usize,
    /// Mean time without devices between submission and end, in seconds.
    pub mean_wait_s: f64,
    /// The wait that 95 of 100 jobs do not exceed, in seconds.
    pub p95_wait_s: f64,
    /// Mean time from submission to end, in seconds.
    pub mean_jct_s: f64,
    /// The JCT that 95 of 100 jobs do not exceed, in seconds.
    pub p95_jct_s: f64,
    /// GPU time that the jobs held, in hours of a whole GPU.
    pub gpu_hours: f64,
}

impl UserMetrics {
    /// Every user, in the order of their names.
    #[must_use]
    pub fn of(jobs: &[JobResult]) -> Vec<UserMetrics> {
        let mut by_user: BTreeMap<&str, Vec<&JobResult>> = BTreeMap::new();
        for job in jobs {
            by_user.entry(&job.user).or_default().push(job);
        }
        by_user.into_iter().map(|(user, jobs)| of_user(user, &jobs)).collect()
    }
}

fn of_user(user: &str, jobs: &[&JobResult]) -> UserMetrics {
    let sorted = |time: fn(&JobResult) -> Option<Span>| {
        let times = jobs.iter().filter_map(|job| time(job));
        let mut times: Vec<f64> = times.map(Span::as_secs_f64).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let (waits, completion_times) = (sorted(JobResult::waited), sorted(JobResult::completion_time));
    UserMetrics {
        user: user.to_owned(),
        jobs: jobs.len(),
        completed: jobs.iter().filter(|job| job.state == JobState::Completed).count(),
        mean_wait_s: mean(waits.iter().copied()),
        p95_wait_s: percentile(&waits, 0.95),
        mean_jct_s: mean(completion_times.iter().copied()),
        p95_jct_s: percentile(&completion_times, 0.95),
        gpu_hours: jobs.iter().map(|job| job.gpu_seconds()).sum::<f64>() / 3_600.0,
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::Time;

    use super::*;

    #[test]
    fn each_user_has_the_metrics_of_their_own_jobs() {
        let at = |secs| Time::EPOCH + Span::from_secs(secs);
        let job = |user: &str, started: u64, ended: Option<u64>| JobResult {
            line: None,
            user: user.into(),
            submitted: at(0),
            started: Some(at(started)),
            ended: ended.map(at),
            state: if ended.is_some() { JobState::Completed } else { JobState::OutOfMemory },
            devices_milli: 2_000,
            nodes: Vec::new(),
            attempts: ended.map(|ended| (at(started), at(ended))).into_iter().collect(),
            out_of_memory: 0,
            ideal: Span::from_secs(5),
            gang_slowdown: None,
        };
        let jobs = [
            job("bob", 10, Some(1_810)),
            job("ada", 0, Some(3_600)),
            job("bob", 30, Some(60)),
            job("bob", 1, None),
        ];
        let users = UserMetrics::of(&jobs);
        let [ada, bob] = &users[..] else { panic!("{users:?}") };
        assert_eq!((ada.user.as_str(), ada.jobs, ada.gpu_hours, ada.mean_wait_s), ("ada", 1, 2.0, 0.0));
        assert_eq!((bob.jobs, bob.completed, bob.mean_wait_s, bob.p95_wait_s), (3, 2, 20.0, 30.0));
        assert_eq!((bob.mean_jct_s, bob.p95_jct_s), (935.0, 1_810.0));
        assert!((bob.gpu_hours - 2.0 * 1_830.0 / 3_600.0).abs() < 1e-12);
        assert_eq!(UserMetrics::of(&[]), []);
    }
}
