//! What all jobs of one class have in common: where one of them does not fit, none does.
//!
//! Keys are compared by value, never by a hash, so two jobs share a class only if they really need the same.

use cohabit_types::{Demand, LaunchMode};

use super::profile::Profile;
use super::workload::WorkloadKey;
use crate::mapping::GraphKey;

/// What decides where a job may go, and how good that is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClassKey {
    /// Devices, cores and memory: they are there or they are not.
    Resources(Demand),
    /// The same for about as long: for at least 2 to the power of this many microseconds, and less than twice
    /// that.
    ResourcesFor(Demand, u32),
    /// The same with the same graph, by nodes: a placement is equally good for all of them.
    ReplicaGraph(Demand, GraphKey),
    /// The same, where each rank can be put on a chosen device.
    RankedGraph(Demand, GraphKey),
    /// Part of a device, for this workload: what it costs depends on the jobs that use the device.
    SharedDevice(Demand, WorkloadKey),
}

impl ClassKey {
    /// The class of a job by what decides how good a placement on whole devices is.
    #[must_use]
    pub(crate) fn of(demand: &Demand, profile: &Profile) -> ClassKey {
        match (&profile.graph, profile.launch) {
            (None, _) => ClassKey::Resources(*demand),
            (Some(graph), LaunchMode::PerNode) => ClassKey::ReplicaGraph(*demand, graph.key()),
            (Some(graph), LaunchMode::PerGpu) => ClassKey::RankedGraph(*demand, graph.key()),
        }
    }
}
