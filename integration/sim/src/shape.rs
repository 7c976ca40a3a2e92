//! What a machine is made of: the part of its inventory that never changes.
//!
//! Machines with device memory have made-up GPUs, those without have host slots.

use cohabit_proto::{Bytes, Device, DeviceId, DeviceKind};

/// The make of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Its name.
    pub name: String,
    /// Processor cores.
    pub cpus: u32,
    /// Host memory.
    pub memory: Bytes,
    /// How many devices.
    pub devices: u32,
    /// Memory of each; host slots have none.
    pub device_memory: Option<Bytes>,
}

impl Shape {
    /// A machine with this many devices of 24 GiB.
    #[must_use]
    pub fn new(name: &str, devices: u32) -> Shape {
        let (memory, device_memory) = (Bytes(128 << 30), Some(Bytes(24 << 30)));
        Shape { name: name.to_owned(), cpus: 16, memory, devices, device_memory }
    }

    /// Its devices.
    #[must_use]
    pub fn devices(&self) -> Vec<Device> {
        let kind = if self.device_memory.is_some() { DeviceKind::Fake } else { DeviceKind::Host };
        let device = |number| Device {
            id: DeviceId(format!("{}-{number}", self.name)),
            kind,
            model: "simulated".into(),
            memory: self.device_memory,
        };
        (0..self.devices).map(device).collect()
    }
}
