//! What a policy sees, and what fits where.
//!
//! Start with `cluster_view.rs`: nodes, devices, pending and running jobs, kept up to date by changes.
//! `device_fit.rs` alone says whether a demand fits a device, `free_nodes.rs` whether it fits a node, and
//! `host_fit.rs` how much of the host it gets there; `node_shortage.rs` finds what a node has too little of,
//! and `shortage.rs` says it in words. `resource_amounts.rs` adds up GPUs, cores and memory.

mod cluster_view;
mod device_fit;
mod free_nodes;
mod host_fit;
mod node_shortage;
mod resource_amounts;
mod shortage;

pub use cluster_view::{
    AttainedTime, DeviceAvailability, DeviceView, JobTraits, NodeView, NodeWindow, PendingJob, RunPhase,
    RunningJob, SharesChange, SharingMode, SharingTerms, SharingUsers, View, ViewChange,
};
pub use free_nodes::{FreeNodes, check_shape, could_ever_hold};
pub(crate) use resource_amounts::ResourceAmounts;
pub use shortage::{ExclusiveReason, SharingConflict, Shortage};
