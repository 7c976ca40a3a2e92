//! What a machine is made of: the part of its inventory that never changes.
//!
//! Machines with device memory have GPUs, made-up ones or such that MPS serves; those without have host
//! slots.

use std::ops::Range;

use cohabit_policy::mapping::Server;
use cohabit_types::{
    Bandwidth, Bytes, Condition, Device, DeviceId, DeviceKind, DeviceSharing, LinkBandwidths, SharingLimits,
};

/// Where nobody says how fast the network is.
pub(crate) const DEFAULT_NETWORK_BANDWIDTH: Bandwidth = Bandwidth(25_000_000_000);
/// Where nobody says how fast devices of a machine reach each other: 50 gigabytes in a second.
pub(crate) const DEFAULT_INTERCONNECT_BANDWIDTH: Bandwidth = Bandwidth(400_000_000_000);
/// More than the attempts that a machine ever hosts at once.
const RENDEZVOUS_PORTS: Range<u16> = 29_600..30_600;

/// The make of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineSpec {
    /// Its name.
    pub name: String,
    /// Processor cores.
    pub cpus: u32,
    /// Host memory.
    pub memory: Bytes,
    /// How many devices.
    pub devices: u32,
    /// What they are; real GPUs can be shared under MPS.
    pub kind: DeviceKind,
    /// What they are called.
    pub model: String,
    /// Memory of each; host slots have none.
    pub device_memory: Option<Bytes>,
    /// How far its devices may be shared.
    pub sharing: SharingLimits,
    /// How fast its devices reach each other and those of other machines.
    pub links: LinkBandwidths,
    /// So many of the ports that its worker offers to ranks, the first ones, are used by foreign programs.
    pub foreign_ports: u16,
}

impl MachineSpec {
    /// A machine with this many made-up GPUs of 24 GiB, and links of which nothing is known.
    #[must_use]
    pub fn new(name: &str, devices: u32) -> MachineSpec {
        MachineSpec {
            name: name.to_owned(),
            cpus: 16,
            memory: Bytes(128 << 30),
            devices,
            kind: DeviceKind::Fake,
            model: "simulated".into(),
            device_memory: Some(Bytes(24 << 30)),
            sharing: SharingLimits::default(),
            links: LinkBandwidths::default(),
            foreign_ports: 0,
        }
    }

    /// The same with devices of another make.
    #[must_use]
    pub fn with_gpu(self, model: &str, memory: Bytes) -> MachineSpec {
        MachineSpec { model: model.to_owned(), device_memory: Some(memory), ..self }
    }

    /// The same with GPUs that MPS serves.
    #[must_use]
    pub fn under_mps(self) -> MachineSpec {
        MachineSpec { kind: DeviceKind::Gpu, ..self }
    }

    /// The same where at most so many ranks share a device.
    #[must_use]
    pub fn shared_by(self, most: u32) -> MachineSpec {
        MachineSpec { sharing: SharingLimits { max_ranks: most, ..self.sharing }, ..self }
    }

    /// The same with these links.
    #[must_use]
    pub fn with_links(self, links: LinkBandwidths) -> MachineSpec {
        MachineSpec { links, ..self }
    }

    /// What a mapper has to know of it while nothing runs on it; usual links where none are known.
    pub(crate) fn server(&self) -> Server {
        let speed = |known: Option<Bandwidth>, usual: Bandwidth| known.unwrap_or(usual).bytes_per_second();
        Server {
            free: self.devices,
            devices: self.devices,
            network: speed(self.links.network, DEFAULT_NETWORK_BANDWIDTH),
            interconnect: speed(self.links.interconnect, DEFAULT_INTERCONNECT_BANDWIDTH),
            model: self.model.as_str().into(),
        }
    }

    /// Ports that its worker believes to be free.
    pub(crate) fn rendezvous_ports(&self) -> Vec<u16> {
        RENDEZVOUS_PORTS.collect()
    }

    /// Whether a foreign program listens there.
    pub(crate) fn is_foreign(&self, port: u16) -> bool {
        (RENDEZVOUS_PORTS.start..RENDEZVOUS_PORTS.start + self.foreign_ports).contains(&port)
    }

    /// Where its ranks meet.
    pub(crate) fn address(&self) -> String {
        format!("{}.example", self.name)
    }

    /// Its devices.
    #[must_use]
    pub fn devices(&self) -> Vec<Device> {
        let condition = match self.kind {
            DeviceKind::Gpu => Condition { sharing: DeviceSharing::Enforced, ..Condition::default() },
            DeviceKind::Host | DeviceKind::Fake => Condition::default(),
        };
        let device = |number| {
            let id = DeviceId(format!("{}-{number}", self.name).into());
            let device = Device::new(id, self.kind, self.model.clone(), self.device_memory);
            Device { condition: condition.clone(), ..device }
        };
        (0..self.devices).map(device).collect()
    }
}
