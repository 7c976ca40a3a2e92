//! Metrics over the steps of a rank.

use serde::{Deserialize, Serialize};

use crate::{MetricValue, Time};

/// The metrics of one rank over its steps, the oldest first. Of a long training some reports are left out,
/// evenly over its whole length.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricSeries {
    /// The names of the metrics, in the order of the values.
    pub names: Vec<String>,
    /// What was reported.
    pub rows: Vec<MetricRow>,
    /// One of so many reports is kept.
    pub thinning: u64,
}

/// The metrics that were reported with one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricRow {
    /// The step.
    pub step: u64,
    /// When the executor read it, by the clock of its node.
    pub at: Time,
    /// One for each name; none where it was not reported with this step.
    pub values: Vec<Option<MetricValue>>,
}

impl MetricSeries {
    /// The values of one metric with their steps, as far as they were reported.
    pub fn points(&self, name: &str) -> impl Iterator<Item = (u64, MetricValue)> {
        let column = self.names.iter().position(|known| known == name);
        let value = move |row: &MetricRow| Some((row.step, *row.values.get(column?)?.as_ref()?));
        self.rows.iter().filter_map(value)
    }
}
