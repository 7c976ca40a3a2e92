//! Devices: what they are, how they are now, and whether sharing them is enforced.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId};

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

impl Device {
    /// A device of which no driver says anything, and which is well.
    #[must_use]
    pub fn new(id: DeviceId, kind: DeviceKind, model: impl Into<String>, memory: Option<Bytes>) -> Device {
        Device { id, kind, model: model.into(), memory, gpu: None, condition: Condition::default() }
    }
}

/// What a device really is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// An NVIDIA GPU.
    Gpu,
    /// A host slot: a pseudo-device, so that a machine without a GPU can run jobs.
    Host,
    /// A simulated GPU for trying things out: jobs really run, its limits are only bookkeeping.
    Fake,
}

/// What the driver says of a GPU; nothing of it changes while the driver is loaded.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuProperties {
    /// Streaming multiprocessors.
    pub multiprocessors: Option<u32>,
    /// Compute capability, major and minor.
    pub compute_capability: Option<(u32, u32)>,
    /// `00000000:3B:00.0`.
    pub pci_address: String,
    /// Version of the driver.
    pub driver: String,
    /// The newest CUDA that the driver can serve, major and minor.
    pub cuda: Option<(u32, u32)>,
    /// Whether it is divided into instances.
    pub mig: Mig,
    /// Who may compute on it.
    pub compute_mode: ComputeMode,
    /// How other GPUs of the machine are reached from it.
    pub peers: Vec<GpuPeer>,
}

/// Whether a GPU is divided into MIG instances.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mig {
    /// It is one whole, or knows no MIG.
    #[default]
    Off,
    /// It is divided.
    On,
}

/// Who may compute on a GPU, by its driver's compute mode.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeMode {
    /// Any process.
    #[default]
    Default,
    /// One process at a time: under MPS its server, and through it all clients.
    ExclusiveProcess,
    /// Nobody.
    Prohibited,
}

/// How another GPU of the same machine is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuPeer {
    /// The id.
    pub device: DeviceId,
    /// By which way.
    pub path: PeerPath,
}

/// The way from one GPU to another, from the shortest to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerPath {
    /// So many active NVLinks.
    NvLink(u32),
    /// Both are on one board.
    Board,
    /// One PCIe switch.
    Switch,
    /// Several PCIe switches.
    Switches,
    /// A PCIe host bridge.
    HostBridge,
    /// The same NUMA node.
    NumaNode,
    /// From one NUMA node to another.
    System,
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

/// Whether a device may be given to ranks.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// It may.
    #[default]
    Well,
    /// Not yet: it comes back into service by itself. Why it is out.
    Recovering(String),
    /// Not until somebody has looked after it. Why.
    Fenced(String),
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
    /// Under MPS, which enforces them, among ranks of one user at a time: why not of several.
    OneUser(String),
}

impl Default for DeviceSharing {
    fn default() -> DeviceSharing {
        DeviceSharing::Unenforced("nothing limits its ranks".into())
    }
}

/// How far the devices of a node that have memory of their own may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharingLimits {
    /// This many ranks at most.
    pub max_ranks: u32,
    /// Memory that ranks which share a device leave free together: contexts of CUDA and MPS live there.
    pub reserve: Bytes,
}

impl Default for SharingLimits {
    fn default() -> SharingLimits {
        SharingLimits { max_ranks: 3, reserve: Bytes(1 << 30) }
    }
}

/// Whether limits are enforced: those of a rank that shares its device, or those of cores and host memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// They are. On a device, the rank's processes were seen among the clients of the MPS server.
    Enforced,
    /// They are not: why.
    Unenforced(String),
}

impl fmt::Display for Mig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mig::Off => "off",
            Mig::On => "on",
        })
    }
}

impl fmt::Display for ComputeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ComputeMode::Default => "default",
            ComputeMode::ExclusiveProcess => "exclusive-process",
            ComputeMode::Prohibited => "prohibited",
        })
    }
}

impl fmt::Display for PeerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerPath::NvLink(1) => f.write_str("1 NVLink"),
            PeerPath::NvLink(links) => write!(f, "{links} NVLinks"),
            PeerPath::Board => f.write_str("one board"),
            PeerPath::Switch => f.write_str("a PCIe switch"),
            PeerPath::Switches => f.write_str("PCIe switches"),
            PeerPath::HostBridge => f.write_str("a PCIe host bridge"),
            PeerPath::NumaNode => f.write_str("one NUMA node"),
            PeerPath::System => f.write_str("several NUMA nodes"),
        }
    }
}

impl Health {
    /// A word for scripts and tables, and why.
    #[must_use]
    pub fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            Health::Well => ("well", None),
            Health::Recovering(why) => ("recovering", Some(why)),
            Health::Fenced(why) => ("fenced", Some(why)),
        }
    }
}

impl DeviceSharing {
    /// A word for scripts and tables, and why.
    #[must_use]
    pub fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            DeviceSharing::Enforced => ("enforced", None),
            DeviceSharing::Unenforced(why) => ("unenforced", Some(why)),
            DeviceSharing::Alone(why) => ("alone", Some(why)),
            DeviceSharing::OneUser(why) => ("one-user", Some(why)),
        }
    }
}

impl Enforcement {
    /// A word for scripts and tables, and why.
    #[must_use]
    pub fn words(&self) -> (&'static str, Option<&str>) {
        match self {
            Enforcement::Enforced => ("enforced", None),
            Enforcement::Unenforced(why) => ("unenforced", Some(why)),
        }
    }
}

/// `fenced: why`.
fn sentence((word, why): (&str, Option<&str>), f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(word)?;
    why.map_or(Ok(()), |why| write!(f, ": {why}"))
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        sentence(self.words(), f)
    }
}

impl fmt::Display for DeviceSharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        sentence(self.words(), f)
    }
}

impl fmt::Display for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        sentence(self.words(), f)
    }
}
