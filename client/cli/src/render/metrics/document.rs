//! Metrics as a document.

use std::collections::BTreeMap;

use cohabit_client::types::{JobId, MetricRow, MetricValue};
use serde::Serialize;

use super::AttemptSeries;
use crate::render::rfc3339;

/// `{"series": [{"job", "attempt", "rank", "thinning", "reports": [{"step", "time", "metrics"}]}]}`
#[derive(Debug, Serialize)]
pub(crate) struct MetricsDocument {
    series: Vec<SeriesDocument>,
}

#[derive(Debug, Serialize)]
struct SeriesDocument {
    job: JobId,
    attempt: u32,
    rank: u32,
    /// One of so many reports is here.
    thinning: u64,
    reports: Vec<ReportDocument>,
}

#[derive(Debug, Serialize)]
struct ReportDocument {
    step: u64,
    time: String,
    metrics: BTreeMap<String, MetricValue>,
}

impl From<&[AttemptSeries]> for MetricsDocument {
    fn from(all: &[AttemptSeries]) -> MetricsDocument {
        MetricsDocument { series: all.iter().map(SeriesDocument::from).collect() }
    }
}

impl From<&AttemptSeries> for SeriesDocument {
    fn from(AttemptSeries { rank, series }: &AttemptSeries) -> SeriesDocument {
        let report = |row: &MetricRow| ReportDocument {
            step: row.step,
            time: rfc3339(row.at),
            metrics: series
                .names
                .iter()
                .zip(&row.values)
                .filter_map(|(name, value)| Some((name.clone(), (*value)?)))
                .collect(),
        };
        SeriesDocument {
            job: rank.attempt.job,
            attempt: rank.attempt.attempt,
            rank: rank.rank,
            thinning: series.thinning,
            reports: series.rows.iter().map(report).collect(),
        }
    }
}
