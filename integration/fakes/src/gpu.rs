//! What a made-up GPU is, and what is scripted to go wrong with it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The driver, as its library shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Library {
    /// What becomes of the attempt to initialise it.
    pub start: LibraryStart,
    /// Version of the driver.
    pub driver: String,
    /// As NVML says it: 13000 is CUDA 13.0.
    pub cuda: i32,
}

impl Default for Library {
    fn default() -> Library {
        Library { start: LibraryStart::Works, driver: "580.159.03".into(), cuda: 13_000 }
    }
}

/// What becomes of the attempt to initialise the library.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryStart {
    /// It works.
    #[default]
    Works,
    /// The kernel's part of the driver is not loaded.
    DriverNotLoaded,
    /// The kernel's part is of another version than the library.
    VersionMismatch,
    /// The device files may not be opened.
    NoPermission,
}

/// A GPU of the made-up world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FakeGpu {
    /// `GPU-…`
    pub uuid: String,
    /// Says that it is none.
    pub model: String,
    /// Bytes in all.
    pub memory: u64,
    /// Bytes that the driver keeps for itself.
    pub reserved: u64,
    /// Streaming multiprocessors; the library tells cores.
    pub multiprocessors: u32,
    /// Cores of each of them.
    pub cores_per_multiprocessor: u32,
    /// Major and minor.
    pub compute_capability: (i32, i32),
    /// `00000000:3B:00.0`; domain, bus, device and function, in hexadecimal digits.
    pub pci: String,
    /// Whether it is divided.
    pub mig: Mig,
    /// Who may compute on it.
    pub compute_mode: ComputeMode,
    /// Degrees Celsius.
    pub temperature: u32,
    /// Milliwatts.
    pub power: u32,
    /// Percent of the time in which kernels ran.
    pub utilisation: u32,
    /// What the performance monitor says, if the GPU has one.
    pub performance: Option<Performance>,
    /// The way to each other GPU, by its UUID; [`Topology::System`] to those that are not named.
    pub peers: BTreeMap<String, Topology>,
    /// The answer of functions of the library that are scripted to fail, by their names; `*` stands for all
    /// that are asked of this GPU.
    pub faults: BTreeMap<String, NvmlFault>,
    /// So many times is a list of its processes too long for the room that was made for it, as when a process
    /// appears between counting and listing.
    pub racing_lists: u32,
    /// How MPS fares on it.
    pub mps: MpsScript,
}

impl Default for FakeGpu {
    fn default() -> FakeGpu {
        FakeGpu {
            uuid: "GPU-fa4e0000-0000-4000-8000-000000000000".into(),
            model: "Fake H200 (not a GPU)".into(),
            memory: 141 << 30,
            reserved: 512 << 20,
            multiprocessors: 132,
            cores_per_multiprocessor: 128,
            compute_capability: (9, 0),
            pci: "00000000:10:00.0".into(),
            mig: Mig::Off,
            compute_mode: ComputeMode::Default,
            temperature: 41,
            power: 120_000,
            utilisation: 0,
            performance: None,
            peers: BTreeMap::new(),
            faults: BTreeMap::new(),
            racing_lists: 0,
            mps: MpsScript::default(),
        }
    }
}

impl FakeGpu {
    /// The GPU of this number, with a UUID and a PCI address of its own.
    #[must_use]
    pub fn numbered(number: u8) -> FakeGpu {
        FakeGpu {
            uuid: format!("GPU-fa4e0000-0000-4000-8000-{number:012}"),
            pci: format!("00000000:{:02X}:00.0", 0x10_u8.saturating_add(number)),
            ..FakeGpu::default()
        }
    }
}

/// Percentages that the performance monitor shows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Performance {
    /// Multiprocessors with work.
    pub sm_active: f64,
    /// Warps on them.
    pub sm_occupancy: f64,
    /// Tensor cores at work.
    pub tensor_active: f64,
    /// Bandwidth of the memory.
    pub memory_bandwidth: f64,
}

/// Whether a GPU is divided into instances.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mig {
    /// It knows no such thing.
    Unknown,
    /// It is one whole.
    #[default]
    Off,
    /// It is divided.
    On,
}

/// Who may compute.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComputeMode {
    /// Any process.
    #[default]
    Default,
    /// One process.
    ExclusiveProcess,
    /// Nobody.
    Prohibited,
}

/// The way to another GPU.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// So many active NVLinks; on PCIe the way is that of [`Topology::System`].
    NvLinks(u32),
    /// One board.
    Internal,
    /// One PCIe switch.
    Single,
    /// Several switches.
    Multiple,
    /// A host bridge.
    HostBridge,
    /// One NUMA node.
    Node,
    /// From one NUMA node to another.
    #[default]
    System,
}

/// What a function of the library answers that is scripted to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NvmlFault {
    /// The GPU fell off the bus.
    Lost,
    /// It must be reset.
    ResetRequired,
    /// Nothing of that name was found.
    NotFound,
    /// It knows no such thing.
    NotSupported,
    /// Not for this user.
    NoPermission,
    /// Nothing that explains itself.
    Unknown,
}

/// How MPS fares on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MpsScript {
    /// The control daemon's start.
    pub control: StartScript,
    /// The server's start.
    pub server: StartScript,
    /// Milliseconds that the server is initialising, at its start and after a fault.
    pub initialising: u64,
    /// What `terminate_client` does.
    pub terminate: Terminate,
    /// What comes after a fault when all clients are gone.
    pub after_fault: AfterFault,
    /// What the end of a client does that did not leave, and was not removed.
    pub abrupt_end: AbruptEnd,
    /// What `quit` does.
    pub quit: Quit,
    /// Whether `get_server_status` is known.
    pub status: StatusCommand,
    /// More clients than this are refused: 60 from CUDA 13.1, 48 before.
    pub most_clients: usize,
}

impl Default for MpsScript {
    fn default() -> MpsScript {
        MpsScript {
            control: StartScript::Works,
            server: StartScript::Works,
            initialising: 20,
            terminate: Terminate::Confirms,
            after_fault: AfterFault::Recovers,
            abrupt_end: AbruptEnd::Harmless,
            quit: Quit::Ends,
            status: StatusCommand::Known,
            most_clients: 48,
        }
    }
}

/// How a program starts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartScript {
    /// As it should.
    #[default]
    Works,
    /// It ends at once with this status, and without a word: 244 is a missing libcuda, 100 a missing device.
    Exits(i32),
}

/// What `terminate_client` does.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Terminate {
    /// Removes the client and answers 0.
    #[default]
    Confirms,
    /// Answers this CUDA error and removes nobody.
    Answers(i32),
    /// Never answers.
    Hangs,
}

/// What comes after a fault when all clients are gone.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterFault {
    /// The server makes its contexts anew and serves again.
    #[default]
    Recovers,
    /// It stays as it is.
    Stays,
}

/// What the end of a client does that did not leave, and was not removed: one that a signal ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AbruptEnd {
    /// Nothing, as most often.
    #[default]
    Harmless,
    /// It is a fault of all, for its kernels ran on: NVIDIA says that it may be.
    Faults,
}

/// What `quit` does.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quit {
    /// The daemon ends its server and itself.
    #[default]
    Ends,
    /// Nothing, although it says nothing else.
    Ignored,
}

/// Whether `get_server_status` is known to the control program.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatusCommand {
    /// It is.
    #[default]
    Known,
    /// It is not, as with old drivers.
    Unknown,
}
