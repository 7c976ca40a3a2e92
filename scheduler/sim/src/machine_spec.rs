//! The hardware of a machine: the part of its inventory that never changes.
//!
//! Machines with device memory have GPUs, either fake ones or ones that MPS serves; machines without have
//! host slots.

use std::ops::Range;

use cohabit_policy::mapping::Server;
use cohabit_types::{
    Bandwidth, Bytes, Condition, Device, DeviceId, DeviceKind, DeviceSharing, LinkBandwidths, SharingLimits,
    SharingStrategy,
};

/// Network bandwidth of a machine if none is given.
pub(crate) const DEFAULT_NETWORK_BANDWIDTH: Bandwidth = Bandwidth(25_000_000_000);
/// Bandwidth between the devices of a machine if none is given: 50 GB/s.
pub(crate) const DEFAULT_INTERCONNECT_BANDWIDTH: Bandwidth = Bandwidth(400_000_000_000);
/// More ports than a machine ever hosts attempts at the same time.
const RENDEZVOUS_PORTS: Range<u16> = 29_600..30_600;

/// The specification of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineSpec {
    /// Its name.
    pub name: String,
    /// CPU cores.
    pub cpus: u32,
    /// Host memory.
    pub memory: Bytes,
    /// The number of devices.
    pub devices: u32,
    /// The kind of device; real GPUs can be shared under MPS or by taking turns.
    pub kind: DeviceKind,
    /// How real GPUs are shared.
    pub strategy: SharingStrategy,
    /// The model name of the devices.
    pub model: String,
    /// Memory of each device; `None` for host slots.
    pub device_memory: Option<Bytes>,
    /// How far the devices may be shared.
    pub sharing: SharingLimits,
    /// Bandwidths between devices, inside the machine and to other machines.
    pub links: LinkBandwidths,
    /// How many of the first ports that the worker offers to ranks are in use by other programs.
    pub foreign_ports: u16,
}

impl MachineSpec {
    /// A machine with this many fake GPUs of 24 GiB and links of unknown bandwidth.
    #[must_use]
    pub fn new(name: &str, devices: u32) -> MachineSpec {
        MachineSpec {
            name: name.to_owned(),
            cpus: 16,
            memory: Bytes(128 << 30),
            devices,
            kind: DeviceKind::Fake,
            strategy: SharingStrategy::Mps,
            model: "simulated".into(),
            device_memory: Some(Bytes(24 << 30)),
            sharing: SharingLimits::default(),
            links: LinkBandwidths::default(),
            foreign_ports: 0,
        }
    }

    /// The same machine with another GPU model.
    #[must_use]
    pub fn with_gpu(self, model: &str, memory: Bytes) -> MachineSpec {
        MachineSpec { model: model.to_owned(), device_memory: Some(memory), ..self }
    }

    /// The same machine with GPUs that MPS serves.
    #[must_use]
    pub fn under_mps(self) -> MachineSpec {
        MachineSpec { kind: DeviceKind::Gpu, ..self }
    }

    /// The same machine with GPUs that are shared by taking turns, without MPS servers.
    #[must_use]
    pub fn time_sliced(self) -> MachineSpec {
        MachineSpec { kind: DeviceKind::Gpu, strategy: SharingStrategy::TimeSliced, ..self }
    }

    /// The same machine with at most this many ranks on a device.
    #[must_use]
    pub fn shared_by(self, most: u32) -> MachineSpec {
        MachineSpec { sharing: SharingLimits { max_ranks: most, ..self.sharing }, ..self }
    }

    /// The same machine with these links.
    #[must_use]
    pub fn with_links(self, links: LinkBandwidths) -> MachineSpec {
        MachineSpec { links, ..self }
    }

    /// The machine without load, as a mapper sees it; default bandwidths replace unknown ones.
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

    /// The ports that its worker believes to be free.
    pub(crate) fn rendezvous_ports(&self) -> Vec<u16> {
        RENDEZVOUS_PORTS.collect()
    }

    /// Whether another program listens on this port.
    pub(crate) fn is_foreign(&self, port: u16) -> bool {
        (RENDEZVOUS_PORTS.start..RENDEZVOUS_PORTS.start + self.foreign_ports).contains(&port)
    }

    /// The address at which its ranks meet.
    pub(crate) fn address(&self) -> String {
        format!("{}.example", self.name)
    }

    /// Its devices.
    #[must_use]
    pub fn devices(&self) -> Vec<Device> {
        let condition = match (self.kind, self.strategy) {
            (DeviceKind::Gpu, SharingStrategy::Mps) => {
                Condition { sharing: DeviceSharing::Enforced, ..Condition::default() }
            }
            (DeviceKind::Gpu, SharingStrategy::Exclusive | SharingStrategy::TimeSliced)
            | (DeviceKind::Host | DeviceKind::Fake, _) => Condition::default(),
        };
        let device = |number| {
            let id = DeviceId(format!("{}-{number}", self.name).into());
            let device = Device::new(id, self.kind, self.model.clone(), self.device_memory);
            Device { condition: condition.clone(), ..device }
        };
        (0..self.devices).map(device).collect()
    }
}
