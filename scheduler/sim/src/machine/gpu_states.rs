//! The state of the GPUs of a machine and of their MPS servers, and the choices that faults on them leave
//! open.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::DeviceId;

/// State of the GPUs of a machine apart from the processes that run on them.
#[derive(Debug, Default)]
pub(super) struct GpuStates {
    pub(super) servers: BTreeMap<DeviceId, MpsServerState>,
    /// GPUs that do not respond.
    pub(super) lost: BTreeSet<DeviceId>,
}

/// The state of the MPS server of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MpsServerState {
    Active,
    /// In fault. Also the state after a power cut: the server is gone, and its files on the disk remain.
    Broken,
}

/// Whether an operation that can fail does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultChance {
    Succeeds,
    Fails,
}

/// Whom the log of an MPS server names as the cause of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultAttribution {
    /// One of the clients.
    Culprit,
    /// No client.
    Unknown,
}

/// How much GPU memory the ranks are observed to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservedMemory {
    /// As much as they requested.
    AsRequested,
    /// More than they requested.
    OverRequest,
}
