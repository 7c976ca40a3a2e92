//! Documents of nodes and devices, for scripts.
//!
//! Values that the driver does not report are null.

use cohabit_client::types::{
    Bandwidth, ComputeMode, DeviceKind, DeviceRecord, DeviceTelemetry, GpuPeer, GpuProperties, Isolation,
    JobId, Mig, NodeDrain, NodeRecord, PeerPath, RefusedWorker, UserIsolation,
};
use cohabit_console::records::rfc3339;
use serde::Serialize;

/// `{"head_problems": […], "nodes": […], "refused_workers": […]}`
#[derive(Debug, Serialize)]
pub struct NodeListDocument {
    /// What keeps the head from accepting changes.
    pub head_problems: Vec<String>,
    pub nodes: Vec<NodeDocument>,
    /// Only admins see them.
    pub refused_workers: Option<Vec<RefusedWorkerDocument>>,
}

/// Another worker than its own wanted to act as a node.
#[derive(Debug, Serialize)]
pub struct RefusedWorkerDocument {
    node: String,
    address: String,
    at: String,
    times: u64,
}

impl From<&RefusedWorker> for RefusedWorkerDocument {
    fn from(refused: &RefusedWorker) -> RefusedWorkerDocument {
        let RefusedWorker { node, address, at, times } = refused;
        RefusedWorkerDocument {
            node: node.to_string(),
            address: address.clone(),
            at: rfc3339(*at),
            times: *times,
        }
    }
}

/// A node.
#[derive(Debug, Serialize)]
pub struct NodeDocument {
    id: String,
    name: String,
    state: &'static str,
    #[serde(rename = "trouble")]
    problem: Option<String>,
    drain: Option<DrainDocument>,
    since: String,
    address: String,
    build: String,
    cpus: u32,
    cpus_used: u32,
    memory: u64,
    memory_used: u64,
    links: LinkSpeeds,
    sharing: SharingRules,
    isolation: IsolationDocument,
    devices: Vec<DeviceDocument>,
    jobs: Vec<JobId>,
}

/// Bytes per second, where known.
#[derive(Debug, Serialize)]
struct LinkSpeeds {
    network: Option<f64>,
    interconnect: Option<f64>,
}

/// The limits of sharing its devices.
#[derive(Debug, Serialize)]
struct SharingRules {
    max_ranks: u32,
    reserve: u64,
}

/// What the worker isolates.
#[derive(Debug, Serialize)]
struct IsolationDocument {
    users: &'static str,
    /// The one account that it serves.
    account: Option<String>,
    limits: &'static str,
    limits_reason: Option<String>,
    /// Whether a job can open the device files of no GPUs but its own.
    devices: &'static str,
    devices_reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct DeviceDocument {
    id: String,
    kind: DeviceKind,
    model: String,
    health: &'static str,
    health_reason: Option<String>,
    sharing: &'static str,
    sharing_reason: Option<String>,
    memory: Option<u64>,
    /// The memory that jobs have asked for.
    memory_used: u64,
    /// The memory held by processes that Cohabit did not start.
    foreign_memory: u64,
    used: f64,
    jobs: Vec<JobId>,
    gpu: Option<GpuDocument>,
    telemetry: Option<TelemetryDocument>,
}

/// The properties of a GPU, as the driver reports them.
#[derive(Debug, Serialize)]
struct GpuDocument {
    multiprocessors: Option<u32>,
    compute_capability: Option<String>,
    pci_address: String,
    driver: String,
    cuda: Option<String>,
    mig: Mig,
    compute_mode: ComputeMode,
    peers: Vec<PeerDocument>,
}

#[derive(Debug, Serialize)]
struct PeerDocument {
    device: String,
    path: &'static str,
    links: Option<u32>,
}

/// The latest reading of a GPU; fractions are from 0 to 1.
#[derive(Debug, Serialize)]
struct TelemetryDocument {
    at: String,
    #[serde(rename = "utilisation")]
    utilization: Option<f64>,
    memory_used: Option<u64>,
    power_watts: Option<f64>,
    temperature_celsius: Option<f64>,
    sm_active: Option<f64>,
    sm_occupancy: Option<f64>,
    tensor_active: Option<f64>,
    memory_bandwidth: Option<f64>,
}

/// Who drained a node, and why.
#[derive(Debug, Serialize)]
struct DrainDocument {
    by: String,
    at: String,
    reason: Option<String>,
    deadline: Option<String>,
    reservation: Option<u64>,
}

impl From<&NodeDrain> for DrainDocument {
    fn from(drain: &NodeDrain) -> DrainDocument {
        DrainDocument {
            by: drain.by.clone(),
            at: rfc3339(drain.at),
            reason: drain.reason.clone(),
            deadline: drain.deadline.map(rfc3339),
            reservation: drain.reservation,
        }
    }
}

impl From<&NodeRecord> for NodeDocument {
    fn from(node: &NodeRecord) -> NodeDocument {
        NodeDocument {
            id: node.id.to_string(),
            name: node.name.clone(),
            state: node.state.word(),
            problem: node.problem.clone(),
            drain: node.drain.as_ref().map(DrainDocument::from),
            since: rfc3339(node.since),
            address: node.address.clone(),
            build: node.build.clone(),
            cpus: node.cpus,
            cpus_used: node.cpus_used,
            memory: node.memory.0,
            memory_used: node.memory_used.0,
            links: LinkSpeeds {
                network: node.links.network.map(Bandwidth::bytes_per_second),
                interconnect: node.links.interconnect.map(Bandwidth::bytes_per_second),
            },
            sharing: SharingRules { max_ranks: node.sharing.max_ranks, reserve: node.sharing.reserve.0 },
            isolation: IsolationDocument::from(&node.isolation),
            devices: node.devices.iter().map(DeviceDocument::from).collect(),
            jobs: node.jobs.clone(),
        }
    }
}

impl From<&Isolation> for IsolationDocument {
    fn from(isolation: &Isolation) -> IsolationDocument {
        let (limits, why) = isolation.host_limits.words();
        let (devices, why_open) = isolation.devices.words();
        let (users, account) = match &isolation.users {
            UserIsolation::Together => ("together", None),
            UserIsolation::Apart => ("apart", None),
            UserIsolation::OneAccount(account) => ("one_account", Some(account.clone())),
        };
        IsolationDocument {
            users,
            account,
            limits,
            limits_reason: why.map(str::to_owned),
            devices,
            devices_reason: why_open.map(str::to_owned),
        }
    }
}

impl From<&DeviceRecord> for DeviceDocument {
    fn from(record: &DeviceRecord) -> DeviceDocument {
        let condition = &record.device.condition;
        let ((health, unwell), (sharing, unshared)) = (condition.health.words(), condition.sharing.words());
        DeviceDocument {
            id: record.device.id.to_string(),
            kind: record.device.kind,
            model: record.device.model.clone(),
            health,
            health_reason: unwell.map(str::to_owned),
            sharing,
            sharing_reason: unshared.map(str::to_owned),
            memory: record.device.memory.map(|memory| memory.0),
            memory_used: record.memory_used.0,
            foreign_memory: condition.foreign_memory.0,
            used: record.used.as_f64(),
            jobs: record.jobs.clone(),
            gpu: record.device.gpu.as_ref().map(GpuDocument::from),
            telemetry: record.telemetry.as_ref().map(TelemetryDocument::from),
        }
    }
}

impl From<&GpuProperties> for GpuDocument {
    fn from(facts: &GpuProperties) -> GpuDocument {
        let version = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        GpuDocument {
            multiprocessors: facts.multiprocessors,
            compute_capability: facts.compute_capability.map(version),
            pci_address: facts.pci_address.clone(),
            driver: facts.driver.clone(),
            cuda: facts.cuda.map(version),
            mig: facts.mig,
            compute_mode: facts.compute_mode,
            peers: facts.peers.iter().map(PeerDocument::from).collect(),
        }
    }
}

impl From<&GpuPeer> for PeerDocument {
    fn from(peer: &GpuPeer) -> PeerDocument {
        let (path, links) = match peer.path {
            PeerPath::NvLink(links) => ("nvlink", Some(links)),
            PeerPath::Board => ("board", None),
            PeerPath::Switch => ("switch", None),
            PeerPath::Switches => ("switches", None),
            PeerPath::HostBridge => ("host-bridge", None),
            PeerPath::NumaNode => ("numa-node", None),
            PeerPath::System => ("system", None),
        };
        PeerDocument { device: peer.device.to_string(), path, links }
    }
}

impl From<&DeviceTelemetry> for TelemetryDocument {
    fn from(telemetry: &DeviceTelemetry) -> TelemetryDocument {
        let reading = &telemetry.reading;
        let performance = reading.performance.as_ref();
        TelemetryDocument {
            at: rfc3339(telemetry.at),
            utilization: reading.utilization,
            memory_used: reading.memory_used.map(|memory| memory.0),
            power_watts: reading.power,
            temperature_celsius: reading.temperature,
            sm_active: performance.and_then(|it| it.sm_active),
            sm_occupancy: performance.and_then(|it| it.sm_occupancy),
            tensor_active: performance.and_then(|it| it.tensor_active),
            memory_bandwidth: performance.and_then(|it| it.memory_bandwidth),
        }
    }
}
