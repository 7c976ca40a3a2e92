//! The document of the metrics of jobs over their steps.

use std::collections::BTreeMap;

use cohabit_client::types::{JobId, MetricRow, MetricSeries, MetricValue, RankId};
use cohabit_console::records::rfc3339;
use serde::Serialize;

/// `{"series": [{"job", "attempt", "rank", "thinning", "reports": [{"step", "time", "metrics"}]}]}`
#[derive(Debug, Serialize)]
pub struct MetricsDocument {
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

impl MetricsDocument {
    /// Of these ranks of attempts.
    pub fn new<'a>(series: impl IntoIterator<Item = (RankId, &'a MetricSeries)>) -> MetricsDocument {
        MetricsDocument { series: series.into_iter().map(SeriesDocument::from).collect() }
    }
}

impl From<(RankId, &MetricSeries)> for SeriesDocument {
    fn from((rank, series): (RankId, &MetricSeries)) -> SeriesDocument {
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
