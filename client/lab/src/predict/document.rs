//! The document of `predict eval`, for scripts.

use cohabit_predict::interference::{PredictionMetrics, UsageSources};
use serde::Serialize;

/// `{"schema", "model", "rows", "mape_slowdown", …, "us_per_set"}`; values that were not measured are null.
#[derive(Debug, Serialize)]
pub(super) struct EvaluationDocument<'a> {
    pub(super) model: &'a str,
    #[serde(flatten)]
    pub(super) figures: &'a PredictionMetrics,
    pub(super) usage: UsageSources,
    pub(super) us_per_set: Option<f64>,
}
