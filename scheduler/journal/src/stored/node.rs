//! Machines, and where ranks go on them.

use cohabit_types::{
    self as types, Bytes, DeviceId, HostShare, Incarnation, NodeId, RankId, Share, Span, Time,
};
use serde::{Deserialize, Serialize};
use serde_with::As;

use super::{StoredDevice, StoredIsolation, StoredLinkBandwidths, StoredSharingLimits};
use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::WorkerKey")]
pub(crate) struct StoredWorkerKey {
    node: NodeId,
    incarnation: Incarnation,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Inventory")]
pub(crate) struct StoredInventory {
    name: String,
    address: String,
    cpus: u32,
    memory: Bytes,
    #[serde(with = "As::<Vec<StoredDevice>>")]
    devices: Vec<types::Device>,
    build: String,
    #[serde(with = "As::<StoredLinkBandwidths>", default)]
    links: types::LinkBandwidths,
    #[serde(with = "As::<StoredSharingLimits>", default)]
    sharing: types::SharingLimits,
    #[serde(default)]
    max_jobs: Option<u32>,
    #[serde(default)]
    rendezvous_ports: Vec<u16>,
    #[serde(with = "As::<StoredIsolation>", default)]
    isolation: types::Isolation,
    #[serde(default)]
    fetches_code: bool,
    #[serde(default)]
    prefetches: bool,
    #[serde(default)]
    application_ports: bool,
    #[serde(default)]
    changes_host_shares: bool,
    orphan_grace: Span,
    #[serde(rename = "held", with = "As::<Vec<StoredHeldRank>>")]
    held_ranks: Vec<types::HeldRank>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::HeldRank")]
pub(crate) struct StoredHeldRank {
    rank: RankId,
    #[serde(with = "As::<StoredHeldRankPhase>")]
    phase: types::HeldRankPhase,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::HeldRankPhase", rename_all = "lowercase")]
pub(crate) enum StoredHeldRankPhase {
    Starting,
    Running(Time),
    Ended,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Placement")]
pub(crate) struct StoredPlacement {
    #[serde(with = "As::<Vec<StoredRankPlacement>>")]
    parts: Vec<types::RankPlacement>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::RankPlacement")]
pub(crate) struct StoredRankPlacement {
    node: NodeId,
    devices: Vec<DeviceId>,
    share: Share,
    #[serde(default)]
    ranks: Vec<u32>,
    #[serde(with = "As::<Option<StoredHostShare>>", default, skip_serializing_if = "Option::is_none")]
    host: Option<HostShare>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::HostShare")]
pub(crate) struct StoredHostShare {
    cpus: u32,
    memory: Bytes,
}

shape_of! {
    StoredWorkerKey => types::WorkerKey,
    StoredInventory => types::Inventory,
    StoredHeldRank => types::HeldRank,
    StoredHeldRankPhase => types::HeldRankPhase,
    StoredPlacement => types::Placement,
    StoredRankPlacement => types::RankPlacement,
    StoredHostShare => HostShare,
}
