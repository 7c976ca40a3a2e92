//! A trace drawn from a seed: job sizes of the Philly mix as scaled down in earlier work, Poisson arrivals,
//! and log-normal durations of recurring jobs.

use std::f64::consts::TAU;

use cohabit_types::Span;

use super::job::{Trace, TraceJob};
use crate::random::Random;

/// Number of devices, and how many of 160 jobs have it.
const SIZES: [(u64, u64); 6] = [(1, 80), (2, 14), (4, 26), (8, 30), (16, 8), (32, 2)];
/// Each size has this many groups of recurring jobs; group n is 1/n times as frequent as the first.
const GROUPS: u64 = 12;
const USERS: u64 = 16;
/// Median duration over the groups, in seconds.
const MEDIAN_SECONDS: f64 = 1_200.0;
/// Standard deviations of the logarithm of the duration: over groups, and over the jobs of a group.
const SPREAD_OF_GROUPS: f64 = 1.0;
const SPREAD_IN_GROUP: f64 = 0.3;
/// Mean time between two submissions, in seconds; a workload is usually scaled to a given load anyway.
const MEAN_GAP_SECONDS: f64 = 60.0;

/// Draws a trace with this many jobs.
#[must_use]
pub fn synthetic(jobs: usize, seed: u64) -> Trace {
    let mut draws = Random::stream(seed, "synthetic trace");
    let mut at = 0.0;
    let mut jobs: Vec<TraceJob> = (0..jobs)
        .map(|_| {
            let job = job(seed, at, &mut draws);
            at -= MEAN_GAP_SECONDS * (1.0 - draws.fraction()).ln();
            job
        })
        .collect();
    // The times of two arrivals may round to the same microsecond, never to the wrong order.
    jobs.sort_by_key(|job| job.submitted);
    Trace { jobs, skipped: Vec::new() }
}

fn job(seed: u64, at: f64, draws: &mut Random) -> TraceJob {
    let devices = weighted(draws, &SIZES);
    let frequencies: Vec<(u64, u64)> = (1..=GROUPS).map(|number| (number, 27_720 / number)).collect();
    let group = format!("group-{devices}-{}", weighted(draws, &frequencies));
    let mut of_group = Random::stream(seed, &group);
    let user = format!("user-{}", of_group.between(1, USERS));
    let typical = MEDIAN_SECONDS * (SPREAD_OF_GROUPS * normal(&mut of_group)).exp();
    let seconds = typical * (SPREAD_IN_GROUP * normal(draws)).exp();
    TraceJob {
        line: None,
        submitted: Span::from_secs_f64(at),
        duration: Span::from_secs_f64(seconds.max(1.0)),
        devices_milli: devices * 1_000,
        user,
        group,
        model: None,
        batch: None,
        iterations: None,
        gpu_memory: None,
        virtual_cluster: None,
    }
}

/// One of the values, with a probability proportional to its weight.
fn weighted(draws: &mut Random, of: &[(u64, u64)]) -> u64 {
    let mut ticket = draws.between(1, of.iter().map(|(_, weight)| weight).sum());
    for (value, weight) in of {
        if ticket <= *weight {
            return *value;
        }
        ticket -= weight;
    }
    unreachable!("the ticket is at most the sum of all weights")
}

/// A standard normal number (Box-Muller).
fn normal(draws: &mut Random) -> f64 {
    let (radius, angle) = (1.0 - draws.fraction(), draws.fraction());
    (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_trace() {
        assert_eq!(synthetic(200, 7), synthetic(200, 7));
        assert_ne!(synthetic(200, 7), synthetic(200, 8));
        assert_eq!(synthetic(200, 7).jobs[..50], synthetic(50, 7).jobs);
        assert!(synthetic(0, 7).jobs.is_empty());
    }

    #[test]
    fn sizes_and_gaps_have_the_documented_distribution() {
        let trace = synthetic(16_000, 1);
        for (devices, weight) in SIZES {
            let found = trace.jobs.iter().filter(|job| job.devices_milli == devices * 1_000).count() as f64;
            let expected = weight as f64 * 100.0;
            assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{found} jobs with {devices} devices");
        }
        let gap = trace.length().as_secs_f64() / 16_000.0;
        assert!((gap / MEAN_GAP_SECONDS - 1.0).abs() < 0.05, "{gap}");
        assert!(trace.jobs.is_sorted_by_key(|job| job.submitted));
    }

    #[test]
    fn jobs_of_a_group_are_alike() {
        let trace = synthetic(4_000, 3);
        let of_group = |job: &&TraceJob| job.group == "group-1-1";
        let logs: Vec<f64> =
            trace.jobs.iter().filter(of_group).map(|job| job.duration.as_secs_f64().ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let variance = logs.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / logs.len() as f64;
        assert!(logs.len() > 300, "{}", logs.len());
        assert!((variance.sqrt() - SPREAD_IN_GROUP).abs() < 0.05, "{}", variance.sqrt());
    }
}
