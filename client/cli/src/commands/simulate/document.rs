//! The document for scripts: `{"schema", "trace", "cluster", "runs": […]}`.

use cohabit_sim::workload::LeftOut as LeftOutJobs;
use cohabit_sim::{Accuracy, Metrics};
use serde::Serialize;

use super::result::{Outcome, Outcomes};
use crate::render::documents::{Versioned, versioned};

/// What was simulated and what came out.
#[derive(Debug, Serialize)]
pub(super) struct Simulation<'a> {
    trace: &'a str,
    cluster: &'a str,
    devices: u64,
    estimator: &'a str,
    interference: &'a str,
    predictor: &'a str,
    max_slowdown: f64,
    left_out: LeftOut,
    runs: Vec<Run<'a>>,
}

/// Jobs that the cluster can never run.
#[derive(Debug, Serialize)]
struct LeftOut {
    too_wide: usize,
    too_large: usize,
}

/// One policy with one seed.
#[derive(Debug, Serialize)]
struct Run<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    seed: u64,
    load: Option<f64>,
    estimates: &'a Accuracy,
}

pub(super) fn document(outcomes: &Outcomes) -> Versioned<Simulation<'_>> {
    let LeftOutJobs { too_wide, too_large } = outcomes.left_out;
    versioned(Simulation {
        trace: &outcomes.trace,
        cluster: &outcomes.cluster,
        devices: outcomes.devices,
        estimator: &outcomes.estimator,
        interference: &outcomes.interference,
        predictor: &outcomes.predictor,
        max_slowdown: outcomes.max_slowdown,
        left_out: LeftOut { too_wide, too_large },
        runs: outcomes.runs.iter().map(Run::from).collect(),
    })
}

impl<'a> From<&'a Outcome> for Run<'a> {
    fn from(run: &'a Outcome) -> Run<'a> {
        Run { metrics: run.metrics(), seed: run.seed, load: run.load, estimates: &run.evaluated.estimates }
    }
}
