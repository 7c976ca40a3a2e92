//! The metrics of one attempt.

use cohabit_client::types::{MetricSeries, RankId};

/// The metrics of one rank of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct AttemptSeries {
    pub(crate) rank: RankId,
    pub(crate) series: MetricSeries,
}

impl AttemptSeries {
    /// Leaves out all other metrics.
    pub(crate) fn keep(&mut self, wanted: &[String]) {
        let names = std::mem::take(&mut self.series.names);
        let columns: Vec<usize> =
            (0..names.len()).filter(|column| wanted.contains(&names[*column])).collect();
        for row in &mut self.series.rows {
            row.values = columns.iter().map(|column| row.values[*column]).collect();
        }
        self.series.rows.retain(|row| row.values.iter().any(Option::is_some));
        self.series.names = columns.iter().map(|column| names[*column].clone()).collect();
    }
}

/// The names of all metrics, each once, in the order in which they appeared.
pub(crate) fn names(all: &[AttemptSeries]) -> Vec<&str> {
    let mut names = Vec::new();
    for name in all.iter().flat_map(|it| &it.series.names) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}
