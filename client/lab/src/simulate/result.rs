//! What came out: every run with what it ran on, and where the whole of it came from.

use cohabit_console::current_command_line;
use cohabit_sim::workload::SkippedJobs;
use cohabit_sim::{DeviceSpan, EvaluationResult, JobResult, Metrics};
use cohabit_types::{Span, Time};

use super::input::SeededWorkload;
use crate::simulate::arguments::{SimulateArguments, Truth};

/// All runs of one command.
pub(super) struct SimulationResults {
    /// As written on the command line.
    pub(super) trace: String,
    /// Likewise.
    pub(super) cluster: String,
    /// Its devices.
    pub(super) devices: u64,
    pub(super) estimator: String,
    /// What is true of jobs on one GPU.
    pub(super) interference: String,
    /// What policies that ask expect of them.
    pub(super) predictor: String,
    pub(super) max_slowdown: f64,
    /// Whether jobs on one GPU share.
    pub(super) sharing: ConfigurationSource,
    /// The command that makes them again.
    pub(super) command: String,
    /// What the cluster can never run, of the first seed.
    pub(super) left_out: SkippedJobs,
    /// By seed, and by policy in the order in which they were named.
    pub(super) runs: Vec<SimulationResult>,
}

/// Whether jobs on one GPU train measured configurations, and share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigurationSource {
    Measured,
    FromTrace,
}

/// One run.
pub(super) struct SimulationResult {
    pub(super) seed: u64,
    /// Of ideally placed jobs while jobs arrive.
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
            sharing: ConfigurationSource::of(arguments),
            command: current_command_line(),
            left_out: SkippedJobs::default(),
            runs: Vec::new(),
        }
    }

    /// Takes note of what a seed made of the trace.
    pub(super) fn record_left_out(&mut self, jobs: &SeededWorkload) {
        if self.runs.is_empty() {
            self.left_out = jobs.workload.left_out;
        }
    }

    /// Policies in the order in which they were named, with all their runs.
    pub(super) fn by_policy(&self) -> Vec<(&str, Vec<&SimulationResult>)> {
        let mut policies: Vec<(&str, Vec<&SimulationResult>)> = Vec::new();
        for run in &self.runs {
            let policy = run.metrics().policy.as_str();
            match policies.iter_mut().find(|(known, _)| *known == policy) {
                Some((_, runs)) => runs.push(run),
                None => policies.push((policy, vec![run])),
            }
        }
        policies
    }
}

impl SimulationResult {
    pub(super) const fn metrics(&self) -> &Metrics {
        &self.evaluated.metrics
    }

    /// From submission to end of every job that ended, in seconds.
    pub(super) fn completion_times(&self) -> Vec<f64> {
        let jobs = self.evaluated.jobs.iter();
        jobs.filter_map(JobResult::completion_time).map(Span::as_secs_f64).collect()
    }

    /// Jobs that waited, over seconds; each point holds until the next.
    pub(super) fn queued(&self) -> Vec<(f64, f64)> {
        curve(&self.evaluated.series.queued)
    }

    /// Devices that jobs held, over seconds.
    pub(super) fn busy(&self) -> Vec<(f64, f64)> {
        curve(&self.evaluated.series.busy)
    }

    /// When which job held a device.
    pub(super) fn spans(&self) -> &[DeviceSpan] {
        &self.evaluated.spans
    }
}

fn curve(points: &[(Time, u64)]) -> Vec<(f64, f64)> {
    points.iter().map(|(at, count)| (at.as_secs_f64(), *count as f64)).collect()
}
