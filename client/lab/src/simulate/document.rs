//! The document of `simulate`, for scripts: `{"schema", "trace", "cluster", "runs": […]}`.

use std::collections::BTreeMap;

use cohabit_console::{VersionedDocument, with_schema};
use cohabit_sim::{Accuracy, EvaluationMetrics, PeriodMetrics, SharingIncentive};
use serde::Serialize;

use super::comparison::{self, PolicyComparison};
use super::left_out::{LeftOutJobs, not_completed};
use super::result::{SelectedJobs, SensitivitySource, SimulationResult, SimulationResults};

/// The input and the results.
#[derive(Debug, Serialize)]
pub(super) struct SimulationDocument<'a> {
    trace: &'a str,
    cluster: &'a str,
    devices: u64,
    estimator: &'a str,
    interference: &'a str,
    predictor: &'a str,
    learn_online: bool,
    sensitivity: Option<&'a SensitivitySource>,
    max_slowdown: f64,
    progress: f64,
    preemptible: f64,
    stop_cost: String,
    #[serde(flatten)]
    selection: SelectedJobs,
    left_out: LeftOutDocument,
    comparisons: Vec<PolicyComparison<'a>>,
    runs: Vec<RunDocument<'a>>,
}

/// Jobs of the trace that a run does not have, by reason.
#[derive(Debug, Serialize)]
struct LeftOutDocument {
    total: usize,
    #[serde(flatten)]
    by_reason: LeftOutJobs,
}

impl From<LeftOutJobs> for LeftOutDocument {
    fn from(by_reason: LeftOutJobs) -> LeftOutDocument {
        LeftOutDocument { total: by_reason.total(), by_reason }
    }
}

/// One policy on one window with one seed.
#[derive(Debug, Serialize)]
struct RunDocument<'a> {
    #[serde(flatten)]
    metrics: &'a EvaluationMetrics,
    window: u32,
    seed: u64,
    load: Option<f64>,
    left_out: LeftOutDocument,
    /// Jobs that ended in another state than completed, by state.
    not_completed: BTreeMap<String, usize>,
    incentive: Option<SharingIncentive>,
    /// How many models of interference replaced the one before; null for a run that did not learn.
    learned_models: Option<usize>,
    /// The jobs by the time of their submission.
    periods: Vec<PeriodMetrics>,
    estimates: &'a Accuracy,
}

pub(super) fn document(outcomes: &SimulationResults) -> VersionedDocument<SimulationDocument<'_>> {
    with_schema(SimulationDocument {
        trace: &outcomes.trace,
        cluster: &outcomes.cluster,
        devices: outcomes.devices,
        estimator: &outcomes.estimator,
        interference: &outcomes.interference,
        predictor: &outcomes.predictor,
        learn_online: outcomes.learn_online,
        sensitivity: outcomes.sensitivity.as_ref(),
        max_slowdown: outcomes.max_slowdown,
        progress: outcomes.behavior.reporting,
        preemptible: outcomes.behavior.preemptible,
        stop_cost: outcomes.behavior.stop_cost.to_string(),
        selection: outcomes.selection,
        comparisons: comparison::compare(outcomes),
        left_out: outcomes.left_out.into(),
        runs: outcomes.runs.iter().map(RunDocument::from).collect(),
    })
}

impl<'a> From<&'a SimulationResult> for RunDocument<'a> {
    fn from(run: &'a SimulationResult) -> RunDocument<'a> {
        RunDocument {
            metrics: run.metrics(),
            window: run.window + 1,
            seed: run.seed,
            load: run.load,
            left_out: run.left_out.into(),
            not_completed: not_completed(&run.evaluated.jobs),
            incentive: run.incentive,
            learned_models: run.models,
            periods: PeriodMetrics::of(&run.evaluated.jobs),
            estimates: &run.evaluated.estimates,
        }
    }
}
