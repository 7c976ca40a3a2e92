//! The document for scripts: `{"schema", "table", "gpu", "added", "left", "stopped", "unmeasured": […],
//! "sharing": […]}`.

use std::path::Path;

use cohabit_worker_daemon::profile::{Ending, Stop, Together, summaries};
use serde::Serialize;

use crate::render::documents::{Versioned, versioned};

/// What a command did, and what the table says now.
#[derive(Debug, Serialize)]
pub(super) struct Profiled {
    table: String,
    gpu: String,
    added: usize,
    left: usize,
    stopped: Option<&'static str>,
    unmeasured: Vec<Unmeasured>,
    sharing: Vec<Sharing>,
}

#[derive(Debug, Serialize)]
struct Unmeasured {
    workloads: Vec<String>,
    sharing: &'static str,
    reason: String,
}

/// One way of sharing.
#[derive(Debug, Serialize)]
struct Sharing {
    sharing: &'static str,
    feasible: usize,
    infeasible: usize,
    mean_slowdown: Option<f64>,
    mean_throughput: Option<f64>,
    best_pair: Option<Pair>,
    worst_pair: Option<Pair>,
}

#[derive(Debug, Serialize)]
struct Pair {
    workloads: Vec<String>,
    slowdowns: Vec<f64>,
    throughput: f64,
}

pub(super) fn document(ending: &Ending, gpu: &str, table: &Path) -> Versioned<Profiled> {
    let unmeasured = ending.unmeasured.iter().map(|set| Unmeasured {
        workloads: set.workloads.clone(),
        sharing: set.sharing.word(),
        reason: set.reason.clone(),
    });
    let sharing = summaries(&ending.rows).into_iter().map(|summary| Sharing {
        sharing: summary.sharing.word(),
        feasible: summary.feasible,
        infeasible: summary.infeasible,
        mean_slowdown: summary.mean_slowdown,
        mean_throughput: summary.mean_throughput,
        best_pair: summary.best_pair.map(Pair::from),
        worst_pair: summary.worst_pair.map(Pair::from),
    });
    versioned(Profiled {
        table: table.display().to_string(),
        gpu: gpu.to_owned(),
        added: ending.added,
        left: ending.left,
        stopped: ending.stopped.map(|stop| match stop {
            Stop::Asked => "interrupted",
            Stop::TimeOver => "time_over",
        }),
        unmeasured: unmeasured.collect(),
        sharing: sharing.collect(),
    })
}

impl From<Together> for Pair {
    fn from(pair: Together) -> Pair {
        Pair { throughput: pair.throughput(), workloads: pair.workloads, slowdowns: pair.slowdowns }
    }
}
