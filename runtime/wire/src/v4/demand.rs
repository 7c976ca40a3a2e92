//! What a job needs on each node, as peers of protocol 4 say it: cores and host memory are fixed. Frozen:
//! not a field may change.

use cohabit_types::{
    self as types, Bytes, ComputeLimit, EnforcementRequirement, GpuRequest, Sharing, Slowdown, Spread,
};
use serde::{Deserialize, Serialize};

/// What a job needs on each of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// How many nodes, all at once.
    pub nodes: u32,
    /// Devices on each node.
    pub gpus: GpuRequest,
    /// Memory on each device; not limited without it.
    pub gpu_memory: Option<Bytes>,
    /// Processor cores on each node; 0 claims none.
    pub cpus: u32,
    /// Host memory on each node; 0 claims none.
    pub memory: Bytes,
    /// Whether others may join its devices.
    pub sharing: Sharing,
    /// Whether its devices may lie on any nodes.
    pub spread: Spread,
    /// Whether it shares only where its limits are enforced.
    pub limits: EnforcementRequirement,
    /// Whether its share limits its computing too.
    pub compute: ComputeLimit,
    /// How many processes of a rank use its device.
    pub gpu_processes: u32,
    /// The largest slowdown by neighbors on a device; the cluster's setting without it.
    pub max_slowdown: Option<Slowdown>,
}

impl From<Demand> for types::Demand {
    fn from(demand: Demand) -> types::Demand {
        types::Demand {
            nodes: demand.nodes,
            gpus: demand.gpus,
            gpu_memory: demand.gpu_memory,
            cpus: demand.cpus,
            memory: demand.memory,
            sharing: demand.sharing,
            spread: demand.spread,
            limits: demand.limits,
            compute: demand.compute,
            gpu_processes: demand.gpu_processes,
            max_slowdown: demand.max_slowdown,
            ..types::Demand::default()
        }
    }
}

/// Leaves out the range of a job, which begins at its cores and its memory: a worker of protocol 4 gets what
/// the job was given on its node, and that never changes there.
impl From<types::Demand> for Demand {
    fn from(demand: types::Demand) -> Demand {
        Demand {
            nodes: demand.nodes,
            gpus: demand.gpus,
            gpu_memory: demand.gpu_memory,
            cpus: demand.cpus,
            memory: demand.memory,
            sharing: demand.sharing,
            spread: demand.spread,
            limits: demand.limits,
            compute: demand.compute,
            gpu_processes: demand.gpu_processes,
            max_slowdown: demand.max_slowdown,
        }
    }
}
