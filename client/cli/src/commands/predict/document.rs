//! The documents for scripts: what `predict eval` found.

use cohabit_predict::interference::Figures;
use serde::Serialize;

/// `{"schema", "model", "rows", "mape_slowdown", …, "us_per_set"}`; null is what was not measured.
#[derive(Debug, Serialize)]
pub(super) struct Evaluation<'a> {
    pub(super) model: &'a str,
    #[serde(flatten)]
    pub(super) figures: &'a Figures,
    pub(super) us_per_set: Option<f64>,
}
