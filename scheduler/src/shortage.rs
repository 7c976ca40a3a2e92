//! Why a job has no place: what there is too little of, with numbers, for programs and for people.

use std::fmt;

use cohabit_proto::{Bytes, Gpus, ReasonCode, Share};

/// What there is too little of, with numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortage {
    /// No node takes jobs.
    Nodes,
    /// Too few nodes have room at once.
    NodesAtOnce {
        /// Nodes needed.
        needed: u32,
        /// Nodes with room.
        found: u32,
    },
    /// Devices on all nodes together, for a job that may lie on any.
    DevicesInAll {
        /// Devices needed.
        needed: u32,
        /// Devices with room.
        found: u32,
    },
    /// Devices.
    Devices {
        /// What is needed on a node.
        needed: Gpus,
        /// The most wholly free devices on one node.
        whole: u32,
        /// The largest free share of one device.
        share: Share,
    },
    /// Device memory.
    Memory {
        /// Needed on each device.
        needed: Bytes,
        /// The most that is free on a device with enough share.
        free: Bytes,
    },
    /// Cores.
    Cpus {
        /// Needed on a node.
        needed: u32,
        /// The most that are free on one with enough devices.
        free: u32,
    },
    /// Host memory.
    HostMemory {
        /// Needed on a node.
        needed: Bytes,
        /// The most that is free on one with enough devices.
        free: Bytes,
    },
}

impl Shortage {
    /// For programs.
    #[must_use]
    pub const fn code(&self) -> ReasonCode {
        match self {
            Shortage::Nodes => ReasonCode::WaitingForNodes,
            Shortage::NodesAtOnce { .. } | Shortage::DevicesInAll { .. } | Shortage::Devices { .. } => {
                ReasonCode::WaitingForDevices
            }
            Shortage::Memory { .. } => ReasonCode::WaitingForMemory,
            Shortage::Cpus { .. } | Shortage::HostMemory { .. } => ReasonCode::WaitingForHost,
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shortage::Nodes => f.write_str("no worker is connected that takes jobs"),
            Shortage::NodesAtOnce { needed, found } => {
                write!(f, "it needs {needed} nodes at once and {found} have room")
            }
            Shortage::DevicesInAll { needed, found } => {
                write!(f, "it needs {needed} whole device(s) on any nodes and {found} are free")
            }
            Shortage::Devices { needed: Gpus::Part(part), share, .. } => {
                write!(f, "it needs {part} of a device and the largest free part is {share}")
            }
            Shortage::Devices { needed: Gpus::Whole(count), whole, .. } => {
                write!(
                    f,
                    "it needs {count} whole device(s) on a node and the most that are free on one is {whole}"
                )
            }
            Shortage::Memory { needed, free } => {
                write!(f, "it needs {needed} of device memory and the most that is free is {free}")
            }
            Shortage::Cpus { needed, free } => {
                write!(f, "it needs {needed} cores and the most that are free is {free}")
            }
            Shortage::HostMemory { needed, free } => {
                write!(f, "it needs {needed} of host memory and the most that is free is {free}")
            }
        }
    }
}
