//! Devices as peers of protocol 4 know them: they know none that serves one user at a time. Frozen: not a
//! field may change.

use cohabit_types::{
    self as types, Bytes, DeviceId, DeviceKind, DeviceTelemetry, GpuProperties, Health, JobId, Share,
};
use serde::{Deserialize, Serialize};

/// A device that a node offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Unique within the node; a GPU's is its UUID.
    pub id: DeviceId,
    /// What it really is.
    pub kind: DeviceKind,
    /// For people: `NVIDIA H200`, `host slot`.
    pub model: String,
    /// Its memory; a host slot has none of its own to count.
    pub memory: Option<Bytes>,
    /// What its driver says of it, if it is a GPU.
    #[serde(default)]
    pub gpu: Option<GpuProperties>,
    /// How it is now.
    #[serde(default)]
    pub condition: Condition,
}

/// How a device is now, as its worker sees it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Whether it may be given to ranks.
    pub health: Health,
    /// Whether ranks may share it, and what becomes of their limits.
    pub sharing: DeviceSharing,
    /// Memory that processes hold which Cohabit did not start; in steps, so that it seldom changes.
    pub foreign_memory: Bytes,
}

/// Whether ranks may share a device, and what becomes of their limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceSharing {
    /// Under MPS, which enforces them.
    Enforced,
    /// They may, but nothing enforces the limits: why not.
    Unenforced(String),
    /// Each rank gets it alone: why.
    Alone(String),
}

/// A device and what of it is in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// The device.
    pub device: Device,
    /// How much of it is taken.
    pub used: Share,
    /// How much of its memory jobs claim.
    pub memory_used: Bytes,
    /// Its co-location set.
    pub jobs: Vec<JobId>,
    /// What it last showed, where it is a GPU whose worker is connected.
    pub telemetry: Option<DeviceTelemetry>,
}

impl Default for DeviceSharing {
    fn default() -> DeviceSharing {
        types::DeviceSharing::default().into()
    }
}

/// A GPU that one user at a time may share is not shared.
impl From<types::DeviceSharing> for DeviceSharing {
    fn from(sharing: types::DeviceSharing) -> DeviceSharing {
        match sharing {
            types::DeviceSharing::Enforced => DeviceSharing::Enforced,
            types::DeviceSharing::Unenforced(why) => DeviceSharing::Unenforced(why),
            types::DeviceSharing::Alone(why) | types::DeviceSharing::OneUser(why) => {
                DeviceSharing::Alone(why)
            }
        }
    }
}

impl From<DeviceSharing> for types::DeviceSharing {
    fn from(sharing: DeviceSharing) -> types::DeviceSharing {
        match sharing {
            DeviceSharing::Enforced => types::DeviceSharing::Enforced,
            DeviceSharing::Unenforced(why) => types::DeviceSharing::Unenforced(why),
            DeviceSharing::Alone(why) => types::DeviceSharing::Alone(why),
        }
    }
}

impl From<types::Condition> for Condition {
    fn from(condition: types::Condition) -> Condition {
        let types::Condition { health, sharing, foreign_memory } = condition;
        Condition { health, sharing: sharing.into(), foreign_memory }
    }
}

impl From<Condition> for types::Condition {
    fn from(condition: Condition) -> types::Condition {
        let Condition { health, sharing, foreign_memory } = condition;
        types::Condition { health, sharing: sharing.into(), foreign_memory }
    }
}

impl From<types::Device> for Device {
    fn from(device: types::Device) -> Device {
        let types::Device { id, kind, model, memory, gpu, condition } = device;
        Device { id, kind, model, memory, gpu, condition: condition.into() }
    }
}

impl From<Device> for types::Device {
    fn from(device: Device) -> types::Device {
        let Device { id, kind, model, memory, gpu, condition } = device;
        types::Device { id, kind, model, memory, gpu, condition: condition.into() }
    }
}

impl From<types::DeviceRecord> for DeviceRecord {
    fn from(record: types::DeviceRecord) -> DeviceRecord {
        let types::DeviceRecord { device, used, memory_used, jobs, telemetry } = record;
        DeviceRecord { device: device.into(), used, memory_used, jobs, telemetry }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_of_protocol_4_does_not_share_a_gpu_that_one_user_at_a_time_may_share() {
        let of_one_user = types::DeviceSharing::OneUser("the driver is old".into());
        assert_eq!(DeviceSharing::from(of_one_user), DeviceSharing::Alone("the driver is old".into()));
    }
}
