//! How fast and how slow an iteration of a job can be on a cluster, whatever runs there.
//!
//! The mapper's best on the empty cluster, all replicas apart, and what no placement can beat. Free devices
//! play no part, so a job's bounds change only with the cluster.

use super::iteration_time::{DeviceSpeeds, IterationTime, StageSeconds};

/// Iteration times in seconds. Always `floor <= slowest`, and `floor <= fastest <= slowest` up to rounding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// What the mapper reaches on the empty cluster (`alpha^min`); equal to `slowest` where the cluster
    /// could not hold the job.
    pub fastest: f64,
    /// All replicas on different servers of the slowest kind (`alpha^max`).
    pub slowest: f64,
    /// All replicas on one server of the fastest kind, however large it would have to be (`alpha^lb`): no
    /// placement is faster.
    pub floor: f64,
}

/// The two bounds that need no placement, over all kinds of devices: `floor` and `slowest`.
///
/// Without any device there is no traffic either: only computation counts.
pub(super) fn compute_extremes(time: IterationTime<'_>, speeds: &[DeviceSpeeds]) -> (f64, f64) {
    let unlinked = [DeviceSpeeds::unlinked(time.graph)];
    let speeds = if speeds.is_empty() { &unlinked } else { speeds };
    let stages = 0..time.graph.stages().len();
    let fastest = |stage| speeds.iter().map(move |site| time.together(site, stage)).reduce(StageSeconds::min);
    let slowest = |stage| speeds.iter().map(move |site| time.apart(site, stage)).reduce(StageSeconds::max);
    let floor: Vec<StageSeconds> = stages.clone().filter_map(fastest).collect();
    let apart: Vec<StageSeconds> = stages.filter_map(slowest).collect();
    (time.combine(&floor), time.combine(&apart))
}
