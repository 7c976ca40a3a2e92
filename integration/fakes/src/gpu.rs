//! A fake GPU, and its scripted failures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The driver, as its library shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Library {
    /// The result of initialising it.
    pub start: LibraryStart,
    /// Version of the driver.
    pub driver: String,
    /// In NVML's form: 13000 is CUDA 13.0.
    pub cuda: i32,
}

impl Default for Library {
    fn default() -> Library {
        Library { start: LibraryStart::Works, driver: "580.159.03".into(), cuda: 13_000 }
    }
}

/// The result of initialising the library.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryStart {
    /// It works.
    #[default]
    Works,
    /// The kernel module is not loaded.
    DriverNotLoaded,
    /// The kernel module and the library have different versions.
    VersionMismatch,
    /// The device files cannot be opened.
    NoPermission,
}

/// A GPU of the fake world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FakeGpu {
    /// `GPU-…`
    pub uuid: String,
    /// Says that it is none.
    pub model: String,
    /// Total memory in bytes.
    pub memory: u64,
    /// Memory that the driver reserves, in bytes.
    pub reserved: u64,
    /// Streaming multiprocessors; the library reports cores.
    pub multiprocessors: u32,
    /// Cores per multiprocessor.
    pub cores_per_multiprocessor: u32,
    /// The compute capability, major and minor.
    pub compute_capability: (i32, i32),
    /// `00000000:3B:00.0`; domain, bus, device and function, in hexadecimal digits.
    pub pci: String,
    /// Whether MIG is on.
    pub mig: Mig,
    /// Its compute mode.
    pub compute_mode: ComputeMode,
    /// Whether the driver keeps it initialised while no program uses it.
    pub persistence_mode: bool,
    /// Degrees Celsius.
    pub temperature: u32,
    /// Milliwatts.
    pub power: u32,
    /// Utilization in percent.
    #[serde(rename = "utilisation")]
    pub utilization: u32,
    /// The values of the performance monitor, if the GPU has one.
    pub performance: Option<Performance>,
    /// The connection to each other GPU, by its UUID; [`Topology::System`] to those that are not listed.
    pub peers: BTreeMap<String, Topology>,
    /// The errors of library functions that are scripted to fail, by function name; `*` stands for all
    /// functions of this GPU.
    pub faults: BTreeMap<String, NvmlFault>,
    /// How many times a list of its processes is too long for the caller's buffer, as if a process started
    /// between counting and listing.
    pub racing_lists: u32,
    /// The script of MPS on it.
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
            persistence_mode: true,
            temperature: 41,
            power: 120_000,
            utilization: 0,
            performance: None,
            peers: BTreeMap::new(),
            faults: BTreeMap::new(),
            racing_lists: 0,
            mps: MpsScript::default(),
        }
    }
}

impl FakeGpu {
    /// The GPU with this number, with its own UUID and PCI address.
    #[must_use]
    pub fn numbered(number: u8) -> FakeGpu {
        FakeGpu {
            uuid: format!("GPU-fa4e0000-0000-4000-8000-{number:012}"),
            pci: format!("00000000:{:02X}:00.0", 0x10_u8.saturating_add(number)),
            ..FakeGpu::default()
        }
    }
}

/// Values of the performance monitor, in percent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Performance {
    /// Active multiprocessors.
    pub sm_active: f64,
    /// Occupancy.
    pub sm_occupancy: f64,
    /// Active tensor cores.
    pub tensor_active: f64,
    /// Memory bandwidth.
    pub memory_bandwidth: f64,
}

/// Whether a GPU is partitioned by MIG.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mig {
    /// It knows no such thing.
    Unknown,
    /// Off.
    #[default]
    Off,
    /// On.
    On,
}

/// The compute mode.
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

/// The connection to another GPU.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// This many active NVLinks; over PCIe as [`Topology::System`].
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

/// The error of a library function that is scripted to fail.
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
    /// This user has no permission.
    NoPermission,
    /// An unknown error.
    Unknown,
}

/// The script of MPS on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MpsScript {
    /// The control daemon's start.
    pub control: StartScript,
    /// The server's start.
    pub server: StartScript,
    /// How long the server initialises at its start and after a fault, in milliseconds.
    pub initialising: u64,
    /// What `terminate_client` does.
    pub terminate: Terminate,
    /// What happens after a fault when all clients are gone.
    pub after_fault: AfterFault,
    /// The effect of a client that ended without disconnecting and was not removed.
    pub abrupt_end: AbruptEnd,
    /// What `quit` does.
    pub quit: Quit,
    /// Whether `get_server_status` is supported.
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
    /// Normally.
    #[default]
    Works,
    /// It exits at once with this status and without output: 244 is a missing libcuda, 100 a missing device.
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

/// What happens after a fault when all clients are gone.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterFault {
    /// The server creates new contexts and becomes active.
    #[default]
    Recovers,
    /// The server stays in fault.
    Stays,
}

/// What the end of a client does that did not leave, and was not removed: one that a signal ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AbruptEnd {
    /// None, as usual.
    #[default]
    Harmless,
    /// A fault of all clients, because its kernels were running. NVIDIA documents that this can happen.
    Faults,
}

/// What `quit` does.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quit {
    /// The daemon ends its server and itself.
    #[default]
    Ends,
    /// It is ignored without an error.
    Ignored,
}

/// Whether the control program supports `get_server_status`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatusCommand {
    /// It is.
    #[default]
    Known,
    /// No, as with old drivers.
    Unknown,
}
