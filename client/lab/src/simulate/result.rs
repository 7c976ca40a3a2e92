//! The results of all runs, with the options that produced them.

use std::collections::BTreeMap;

use cohabit_console::current_command_line;
use cohabit_sim::workload::SkippedJobs;
use cohabit_sim::{DeviceSpan, EvaluationMetrics, EvaluationResult, JobBehavior, JobResult};
use cohabit_types::{Span, Time};

use super::input::SeededWorkload;
use crate::simulate::arguments::{SimulateArguments, Truth};

/// The results of one command.
pub(super) struct SimulationResults {
    /// As written on the command line.
    pub(super) trace: String,
    /// As written on the command line.
    pub(super) cluster: String,
    /// The number of devices of the cluster.
    pub(super) devices: u64,
    pub(super) estimator: String,
    /// The source of the true slowdowns.
    pub(super) interference: String,
    /// The source of predicted slowdowns.
    pub(super) predictor: String,
    pub(super) max_slowdown: f64,
    /// Which jobs report their progress, and what stops cost.
    pub(super) behavior: JobBehavior,
    /// Where the configurations of jobs come from.
    pub(super) sharing: ConfigurationSource,
    /// The command that reproduces the results.
    pub(super) command: String,
    /// Jobs that the cluster can never run, for the first seed.
    pub(super) left_out: SkippedJobs,
    /// The runs by seed and, within a seed, by policy in the order of the command line.
    pub(super) runs: Vec<SimulationResult>,
}

/// Where the configurations of jobs come from. Only measured ones share GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigurationSource {
    Measured,
    FromTrace,
}

/// One run.
pub(super) struct SimulationResult {
    /// The index of the policy variant, in the order of the command line.
    pub(super) variant: usize,
    pub(super) seed: u64,
    /// The load while jobs arrive, if all jobs were placed ideally.
    pub(super) load: Option<f64>,
    pub(super) evaluated: EvaluationResult,
}

impl ConfigurationSource {
    const fn of(arguments: &SimulateArguments) -> ConfigurationSource {
        match (&arguments.interference, &arguments.configurations) {
            (Truth::Law | Truth::Model(_), None) => ConfigurationSource::FromTrace,
            (Truth::Table(_), _) | (Truth::Law | Truth::Model(_), Some(_)) => ConfigurationSource::Measured,
        }
    }
}

impl SimulationResults {
    pub(super) fn of(arguments: &SimulateArguments) -> SimulationResults {
        SimulationResults {
            trace: arguments.trace.to_string(),
            cluster: arguments.cluster.written.clone(),
            devices: arguments.cluster.spec.devices(),
            estimator: arguments.estimator.to_string(),
            interference: arguments.interference.to_string(),
            predictor: arguments.predictor.to_string(),
            max_slowdown: arguments.max_slowdown,
            behavior: arguments.behavior.behavior(),
            sharing: ConfigurationSource::of(arguments),
            command: current_command_line(),
            left_out: SkippedJobs::default(),
            runs: Vec::new(),
        }
    }

    /// Records the jobs that were left out for the first seed.
    pub(super) fn record_left_out(&mut self, jobs: &SeededWorkload) {
        if self.runs.is_empty() {
            self.left_out = jobs.workload.left_out;
        }
    }

    /// The policies in the order of the command line, with all their runs.
    pub(super) fn by_policy(&self) -> Vec<(&str, Vec<&SimulationResult>)> {
        let mut policies: BTreeMap<usize, (&str, Vec<&SimulationResult>)> = BTreeMap::new();
        for run in &self.runs {
            let (_, runs) =
                policies.entry(run.variant).or_insert_with(|| (run.metrics().policy.as_str(), Vec::new()));
            runs.push(run);
        }
        policies.into_values().collect()
    }
}

impl SimulationResult {
    pub(super) const fn metrics(&self) -> &EvaluationMetrics {
        &self.evaluated.metrics
    }

    /// The time from submission to end of every ended job, in seconds.
    pub(super) fn completion_times(&self) -> Vec<f64> {
        let jobs = self.evaluated.jobs.iter();
        jobs.filter_map(JobResult::completion_time).map(Span::as_secs_f64).collect()
    }

    /// The number of waiting jobs over time in seconds, as a step function.
    pub(super) fn queued(&self) -> Vec<(f64, f64)> {
        curve(&self.evaluated.series.queued)
    }

    /// The number of devices in use over time in seconds.
    pub(super) fn busy(&self) -> Vec<(f64, f64)> {
        curve(&self.evaluated.series.busy)
    }

    /// The intervals in which jobs held devices.
    pub(super) fn spans(&self) -> &[DeviceSpan] {
        &self.evaluated.spans
    }
}

fn curve(points: &[(Time, u64)]) -> Vec<(f64, f64)> {
    points.iter().map(|(at, count)| (at.as_secs_f64(), *count as f64)).collect()
}
