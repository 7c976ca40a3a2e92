//! Paired comparisons: how a policy performs relative to the baseline on the same jobs.
//!
//! Each window is one observation, or each seed where there is one window: runs of several seeds on one
//! window have the same arrivals, so their mean counts as one.

use std::collections::BTreeMap;

use cohabit_sim::EvaluationMetrics;
use serde::Serialize;

use super::result::{SimulationResult, SimulationResults};
use super::statistics::{Interval, MeanAndDeviation};

/// A policy relative to the baseline.
#[derive(Debug, Serialize)]
pub(super) struct PolicyComparison<'a> {
    policy: &'a str,
    baseline: &'a str,
    /// Observations: windows, or seeds.
    observations: usize,
    /// By the name of the metric.
    metrics: BTreeMap<&'static str, MetricComparison>,
}

/// A metric relative to that of the baseline.
#[derive(Debug, Serialize)]
struct MetricComparison {
    /// The geometric mean of the ratios; none where a value is zero.
    ratio: Option<Interval>,
    /// The mean of the differences, in seconds.
    difference_s: Interval,
}

/// The value of a run.
type Metric = fn(&EvaluationMetrics) -> f64;

/// The metrics that are compared, all in seconds.
const METRICS: [(&str, Metric); 7] = [
    ("mean_jct_s", |it| it.mean_jct_s),
    ("median_jct_s", |it| it.median_jct_s),
    ("p95_jct_s", |it| it.p95_jct_s),
    ("p99_jct_s", |it| it.p99_jct_s),
    ("max_jct_s", |it| it.max_jct_s),
    ("mean_wait_s", |it| it.mean_wait_s),
    ("max_wait_s", |it| it.max_wait_s),
];

/// Compares every policy with the baseline.
pub(super) fn compare(outcomes: &SimulationResults) -> Vec<PolicyComparison<'_>> {
    let policies = outcomes.by_policy();
    let Some((baseline, base)) = policies.get(outcomes.baseline).cloned() else { return Vec::new() };
    let compared = policies.into_iter().map(|(policy, own)| {
        let metrics = METRICS.into_iter().map(|(name, metric)| {
            let pairs = paired(&own, &base, metric);
            (name, MetricComparison { ratio: ratio(&pairs), difference_s: difference(&pairs) })
        });
        let (metrics, observations) = (metrics.collect(), observation_count(&own));
        PolicyComparison { policy, baseline, observations, metrics }
    });
    compared.collect()
}

/// The mean completion time relative to that of the baseline.
pub(super) fn mean_jct_ratio(own: &[&SimulationResult], base: &[&SimulationResult]) -> Option<Interval> {
    ratio(&paired(own, base, |it| it.mean_jct_s))
}

/// The values of a policy and of the baseline on the same jobs, by observation.
fn paired(own: &[&SimulationResult], base: &[&SimulationResult], metric: Metric) -> Vec<Vec<(f64, f64)>> {
    let by_window = own.iter().any(|run| run.window != own[0].window);
    let mut pairs: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for (own, base) in own.iter().zip(base) {
        let observation = if by_window { u64::from(own.window) } else { own.seed };
        pairs.entry(observation).or_default().push((metric(own.metrics()), metric(base.metrics())));
    }
    pairs.into_values().collect()
}

fn observation_count(own: &[&SimulationResult]) -> usize {
    paired(own, own, |_| 0.0).len()
}

fn ratio(observations: &[Vec<(f64, f64)>]) -> Option<Interval> {
    let is_positive = |(own, base): &(f64, f64)| *own > 0.0 && *base > 0.0;
    if !observations.iter().flatten().all(is_positive) || observations.is_empty() {
        return None;
    }
    let mean_ratio = |pairs: &Vec<(f64, f64)>| {
        let ratios: Vec<f64> = pairs.iter().map(|(own, base)| own / base).collect();
        Interval::of_ratios(&ratios).mean
    };
    Some(Interval::of_ratios(&observations.iter().map(mean_ratio).collect::<Vec<_>>()))
}

fn difference(observations: &[Vec<(f64, f64)>]) -> Interval {
    let mean_difference = |pairs: &Vec<(f64, f64)>| {
        let differences: Vec<f64> = pairs.iter().map(|(own, base)| own - base).collect();
        MeanAndDeviation::of(&differences).mean
    };
    Interval::of(&observations.iter().map(mean_difference).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::samples::{outcomes, outcomes_of_windows};

    fn number(value: &serde_json::Value) -> f64 {
        value.as_f64().unwrap()
    }

    #[test]
    fn seeds_are_observations_where_there_is_one_window() {
        let outcomes = outcomes();
        let document = serde_json::to_value(compare(&outcomes)).unwrap();
        let own = &document[0]["metrics"]["mean_jct_s"];
        assert_eq!((number(&own["ratio"]["mean"]), number(&own["difference_s"]["mean"])), (1.0, 0.0));
        // 100 s against 200 and 400 s: ratios of a half and a quarter.
        let other = &document[1]["metrics"]["mean_jct_s"];
        assert_eq!((&document[1]["baseline"], &document[1]["observations"]), (&"fifo".into(), &2.into()));
        assert!((number(&other["ratio"]["mean"]) - 0.125_f64.sqrt()).abs() < 1e-9, "{other}");
        assert_eq!(number(&other["difference_s"]["mean"]), -200.0);
        // The deviation of -100 and -300 is 141.42, and its mean is known to 12.706 x 100.
        assert!((number(&other["difference_s"]["low"]) + 1_470.6).abs() < 0.1, "{other}");
    }

    #[test]
    fn the_seeds_of_a_window_are_one_observation() {
        let outcomes = outcomes_of_windows();
        let document = serde_json::to_value(compare(&outcomes)).unwrap();
        let other = &document[1];
        assert_eq!(other["observations"], 2);
        // Ratios of 1/2 and 1/8 in the first window, and twice 1/4 in the second: no difference between them.
        let ratio = &other["metrics"]["mean_jct_s"]["ratio"];
        for bound in ["mean", "low", "high"] {
            assert!((number(&ratio[bound]) - 0.25).abs() < 1e-9, "{ratio}");
        }
    }
}
