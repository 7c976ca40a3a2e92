//! The results of all runs, with the options that produced them.

use std::collections::BTreeMap;

use cohabit_console::{CommandError, current_command_line};
use cohabit_sim::{
    DEFAULT_MAX_SLOWDOWN, DeviceSpan, EvaluationMetrics, EvaluationResult, JobBehavior, JobResult,
    SharingIncentive,
};
use cohabit_types::{Span, Time};

use serde::Serialize;

use super::left_out::LeftOutJobs;
use crate::simulate::arguments::{SensitivityArguments, SimulateArguments, Truth, WorkloadArguments};

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
    /// Whether runs learned interference.
    pub(super) learn_online: bool,
    /// The tables of sensitivity, if jobs have ranges.
    pub(super) sensitivity: Option<SensitivitySource>,
    pub(super) max_slowdown: f64,
    /// Which jobs of the trace were used.
    pub(super) selection: SelectedJobs,
    /// The index of the policy that the others are compared with.
    pub(super) baseline: usize,
    /// Which jobs report their progress, and what stops cost.
    pub(super) behavior: JobBehavior,
    /// Where the configurations of jobs come from.
    pub(super) sharing: ConfigurationSource,
    /// The command that reproduces the results.
    pub(super) command: String,
    /// Jobs of the trace that no run has, over all windows, for the first seed.
    pub(super) left_out: LeftOutJobs,
    /// The runs by window, seed and policy in the order of the command line.
    pub(super) runs: Vec<SimulationResult>,
}

/// Which jobs of the trace were used.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct SelectedJobs {
    /// The longest run time, in seconds.
    pub(super) max_duration_s: Option<f64>,
    /// The most GPUs.
    pub(super) max_gpus: Option<u32>,
    /// Jobs before the first window.
    pub(super) skip: usize,
    /// Jobs of a window.
    pub(super) limit: Option<usize>,
    /// The number of windows.
    pub(super) windows: u32,
    /// Jobs from the start of a window to that of the next.
    pub(super) stride: usize,
}

/// Where the configurations of jobs come from. Only measured ones share GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigurationSource {
    Measured,
    FromTrace,
}

/// Where the tables of sensitivity come from, and what policies know of them.
#[derive(Debug, Clone, Serialize)]
pub(super) struct SensitivitySource {
    /// The file or directory.
    pub(super) tables: String,
    /// The profiles that groups draw from, if they were chosen.
    pub(super) models: Vec<String>,
    /// What policies know from the start.
    pub(super) known: String,
}

impl SensitivitySource {
    fn of(arguments: &SensitivityArguments) -> Option<SensitivitySource> {
        Some(SensitivitySource {
            tables: arguments.sensitivity.as_ref()?.display().to_string(),
            models: arguments.sensitivity_models.clone(),
            known: arguments.known().to_string(),
        })
    }
}

/// One run.
pub(super) struct SimulationResult {
    /// The index of the policy variant, in the order of the command line.
    pub(super) variant: usize,
    /// The part of the trace, from 0.
    pub(super) window: u32,
    pub(super) seed: u64,
    /// The load while jobs arrive, if all jobs were placed ideally.
    pub(super) load: Option<f64>,
    /// Jobs of the trace that this run does not have.
    pub(super) left_out: LeftOutJobs,
    /// How many jobs are done later than without sharing, if that was asked.
    pub(super) incentive: Option<SharingIncentive>,
    /// How many models of interference replaced the one before during the run, if it learned.
    pub(super) models: Option<usize>,
    pub(super) evaluated: EvaluationResult,
}

impl ConfigurationSource {
    const fn of(arguments: &WorkloadArguments) -> ConfigurationSource {
        match (&arguments.interference, &arguments.configurations) {
            (Truth::Law | Truth::Model(_), None) => ConfigurationSource::FromTrace,
            (Truth::Table(_), _) | (Truth::Law | Truth::Model(_), Some(_)) => ConfigurationSource::Measured,
        }
    }
}

impl SelectedJobs {
    fn of(arguments: &SimulateArguments) -> SelectedJobs {
        let (limits, selection) = (arguments.workload.limits(), &arguments.selection);
        SelectedJobs {
            max_duration_s: limits.duration.map(Span::as_secs_f64),
            max_gpus: limits.devices,
            skip: selection.skip,
            limit: selection.jobs_per_window(),
            windows: selection.windows,
            stride: selection.start_of(1) - selection.start_of(0),
        }
    }
}

impl SimulationResults {
    /// No runs yet.
    ///
    /// # Errors
    /// If --baseline names no policy that runs.
    pub(super) fn of(arguments: &SimulateArguments) -> Result<SimulationResults, CommandError> {
        let workload = &arguments.workload;
        Ok(SimulationResults {
            trace: workload.trace.to_string(),
            cluster: workload.cluster.written.clone(),
            devices: workload.cluster.spec.devices(),
            estimator: workload.estimator.to_string(),
            interference: workload.interference.to_string(),
            predictor: workload.predictor().to_string(),
            learn_online: arguments.learn_online,
            sensitivity: SensitivitySource::of(&workload.sensitivity),
            max_slowdown: workload.max_slowdown.unwrap_or(DEFAULT_MAX_SLOWDOWN),
            selection: SelectedJobs::of(arguments),
            baseline: arguments.baseline_index()?,
            behavior: workload.behavior.behavior(),
            sharing: ConfigurationSource::of(workload),
            command: current_command_line(),
            left_out: LeftOutJobs::default(),
            runs: Vec::new(),
        })
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
