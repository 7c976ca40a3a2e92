//! Devices, and how far their limits are enforced.

use cohabit_types::{self as types, Bandwidth, Bytes, DeviceId};
use serde::{Deserialize, Serialize};
use serde_with::As;

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Device")]
pub(crate) struct StoredDevice {
    id: DeviceId,
    #[serde(with = "As::<StoredDeviceKind>")]
    kind: types::DeviceKind,
    model: String,
    memory: Option<Bytes>,
    #[serde(with = "As::<Option<StoredGpuProperties>>", default)]
    gpu: Option<types::GpuProperties>,
    #[serde(with = "As::<StoredCondition>", default)]
    condition: types::Condition,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::DeviceKind", rename_all = "lowercase")]
pub(crate) enum StoredDeviceKind {
    Gpu,
    Host,
    Fake,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::GpuProperties")]
pub(crate) struct StoredGpuProperties {
    multiprocessors: Option<u32>,
    compute_capability: Option<(u32, u32)>,
    pci_address: String,
    driver: String,
    cuda: Option<(u32, u32)>,
    #[serde(with = "As::<StoredMig>")]
    mig: types::Mig,
    #[serde(with = "As::<StoredComputeMode>")]
    compute_mode: types::ComputeMode,
    #[serde(with = "As::<Vec<StoredGpuPeer>>")]
    peers: Vec<types::GpuPeer>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Mig", rename_all = "lowercase")]
pub(crate) enum StoredMig {
    Off,
    On,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ComputeMode", rename_all = "kebab-case")]
pub(crate) enum StoredComputeMode {
    Default,
    ExclusiveProcess,
    Prohibited,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::GpuPeer")]
pub(crate) struct StoredGpuPeer {
    device: DeviceId,
    #[serde(with = "As::<StoredPeerPath>")]
    path: types::PeerPath,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::PeerPath", rename_all = "kebab-case")]
pub(crate) enum StoredPeerPath {
    NvLink(u32),
    Board,
    Switch,
    Switches,
    HostBridge,
    NumaNode,
    System,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Condition")]
pub(crate) struct StoredCondition {
    #[serde(with = "As::<StoredHealth>")]
    health: types::Health,
    #[serde(with = "As::<StoredDeviceSharing>")]
    sharing: types::DeviceSharing,
    foreign_memory: Bytes,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Health", rename_all = "snake_case")]
pub(crate) enum StoredHealth {
    Well,
    Recovering(String),
    Fenced(String),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::DeviceSharing", rename_all = "snake_case")]
pub(crate) enum StoredDeviceSharing {
    Enforced,
    Unenforced(String),
    Alone(String),
    OneUser(String),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::SharingLimits")]
pub(crate) struct StoredSharingLimits {
    max_ranks: u32,
    reserve: Bytes,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Enforcement", rename_all = "snake_case")]
pub(crate) enum StoredEnforcement {
    Enforced,
    Unenforced(String),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Isolation")]
pub(crate) struct StoredIsolation {
    #[serde(with = "As::<StoredUserIsolation>")]
    users: types::UserIsolation,
    #[serde(with = "As::<StoredEnforcement>")]
    host_limits: types::Enforcement,
    #[serde(with = "As::<StoredEnforcement>", default = "unknown")]
    devices: types::Enforcement,
}

/// For entries that were written before workers closed device files.
fn unknown() -> types::Enforcement {
    types::Isolation::default().devices
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::UserIsolation", rename_all = "snake_case")]
pub(crate) enum StoredUserIsolation {
    Together,
    Apart,
    OneAccount(String),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::LinkBandwidths")]
pub(crate) struct StoredLinkBandwidths {
    network: Option<Bandwidth>,
    interconnect: Option<Bandwidth>,
}

shape_of! {
    StoredDevice => types::Device,
    StoredDeviceKind => types::DeviceKind,
    StoredGpuProperties => types::GpuProperties,
    StoredMig => types::Mig,
    StoredComputeMode => types::ComputeMode,
    StoredGpuPeer => types::GpuPeer,
    StoredPeerPath => types::PeerPath,
    StoredCondition => types::Condition,
    StoredHealth => types::Health,
    StoredDeviceSharing => types::DeviceSharing,
    StoredSharingLimits => types::SharingLimits,
    StoredEnforcement => types::Enforcement,
    StoredIsolation => types::Isolation,
    StoredUserIsolation => types::UserIsolation,
    StoredLinkBandwidths => types::LinkBandwidths,
}
