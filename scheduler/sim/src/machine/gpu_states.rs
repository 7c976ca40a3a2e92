//! The state of the GPUs of a machine and of their MPS servers, and the choices that faults on them leave open.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::DeviceId;

/// Beside the processes, what is on a machine's GPUs.
#[derive(Debug, Default)]
pub(super) struct GpuStates {
    pub(super) servers: BTreeMap<DeviceId, MpsServerState>,
    /// Those that do not answer.
    pub(super) lost: BTreeSet<DeviceId>,
}

/// The MPS server of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MpsServerState {
    Active,
    /// In fault; or gone with the machine's power, and the disk tells that it was here.
    Broken,
}

/// How something goes that may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultChance {
    Good,
    Bad,
}

/// Whom the log of an MPS server blames for a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultAttribution {
    /// One of its clients.
    Culprit,
    /// Nobody.
    Nobody,
}

/// How much memory of a GPU ranks are seen to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservedMemory {
    /// What they asked for.
    AsRequested,
    /// More than that.
    OverRequest,
}
