//! The document for scripts: `{"schema", "table", "gpu", "added", "left", "stopped", "unmeasured": […],
//! "sharing": […]}`.

use std::path::Path;

use cohabit_console::{VersionedDocument, with_schema};
use cohabit_profiler::{EarlyStop, ProfileReport, SetSlowdowns, summaries};
use serde::Serialize;

/// The result of a command and a summary of the table.
#[derive(Debug, Serialize)]
pub(super) struct ProfileDocument {
    table: String,
    gpu: String,
    added: usize,
    left: usize,
    stopped: Option<&'static str>,
    unmeasured: Vec<UnmeasuredSet>,
    sharing: Vec<SharingDocument>,
}

#[derive(Debug, Serialize)]
struct UnmeasuredSet {
    workloads: Vec<String>,
    sharing: &'static str,
    reason: String,
}

/// One way of sharing.
#[derive(Debug, Serialize)]
struct SharingDocument {
    sharing: &'static str,
    feasible: usize,
    infeasible: usize,
    mean_slowdown: Option<f64>,
    mean_throughput: Option<f64>,
    best_pair: Option<PairDocument>,
    worst_pair: Option<PairDocument>,
}

#[derive(Debug, Serialize)]
struct PairDocument {
    workloads: Vec<String>,
    slowdowns: Vec<f64>,
    throughput: f64,
}

pub(super) fn document(
    report: &ProfileReport,
    gpu: &str,
    table: &Path,
) -> VersionedDocument<ProfileDocument> {
    let unmeasured = report.unmeasured.iter().map(|set| UnmeasuredSet {
        workloads: set.workloads.clone(),
        sharing: set.sharing.word(),
        reason: set.reason.clone(),
    });
    let sharing = summaries(&report.rows).into_iter().map(|summary| SharingDocument {
        sharing: summary.sharing.word(),
        feasible: summary.feasible,
        infeasible: summary.infeasible,
        mean_slowdown: summary.mean_slowdown,
        mean_throughput: summary.mean_throughput,
        best_pair: summary.best_pair.map(PairDocument::from),
        worst_pair: summary.worst_pair.map(PairDocument::from),
    });
    with_schema(ProfileDocument {
        table: table.display().to_string(),
        gpu: gpu.to_owned(),
        added: report.added,
        left: report.left,
        stopped: report.stopped.map(|stop| match stop {
            EarlyStop::Interrupted => "interrupted",
            EarlyStop::TimeOver => "time_over",
        }),
        unmeasured: unmeasured.collect(),
        sharing: sharing.collect(),
    })
}

impl From<SetSlowdowns> for PairDocument {
    fn from(pair: SetSlowdowns) -> PairDocument {
        PairDocument { throughput: pair.throughput(), workloads: pair.workloads, slowdowns: pair.slowdowns }
    }
}
