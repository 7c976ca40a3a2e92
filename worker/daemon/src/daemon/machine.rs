//! What this machine is and has, as the head learns it.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::thread::available_parallelism;

use cohabit_types::{Bytes, Device, Inventory, Isolation, LinkBandwidths, NodeId, SharingLimits, Span};
use procfs::Current;

use super::driver::InventorySnapshot;
use super::rendezvous::PortBlock;
use super::{WorkerError, WorkerOptions, network};

/// Everything of the inventory that does not change while the daemon runs.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) name: String,
    /// Where other nodes reach it, if the operator has said so.
    address: Option<String>,
    cpus: u32,
    memory: Bytes,
    /// As they were when the daemon started.
    pub(crate) devices: Vec<Device>,
    /// As the operator has said.
    links: LinkBandwidths,
    /// How far its GPUs may be shared.
    sharing: SharingLimits,
    /// Nothing, if other workers on this machine have taken all there are.
    ports: Option<Arc<PortBlock>>,
    /// What it keeps apart.
    isolation: Isolation,
    orphan_grace: Span,
}

impl Machine {
    /// Looks around, and takes ports for the ranks of this node.
    pub(crate) async fn look(
        options: &WorkerOptions,
        node: NodeId,
        isolation: Isolation,
    ) -> Result<Machine, WorkerError> {
        let (spec, library, mps) = (options.devices.clone(), options.nvml_library.clone(), options.mps);
        let devices = tokio::task::spawn_blocking(move || spec.devices(library.as_deref(), mps)).await;
        let ports = PortBlock::claim(node.0.as_u128());
        if ports.is_none() {
            tracing::warn!("other workers use all ports for ranks to meet at: jobs get no MASTER_PORT here");
        }
        let cpus = available_parallelism().map_err(WorkerError::Machine)?;
        Ok(Machine {
            name: options.name.clone().map_or_else(host_name, Ok)?,
            address: options.address.clone(),
            cpus: u32::try_from(cpus.get()).unwrap_or(u32::MAX),
            memory: memory()?,
            devices: devices.map_err(|panic| WorkerError::Machine(panic.into()))?,
            links: options.links,
            sharing: options.sharing,
            ports: ports.map(Arc::new),
            isolation,
            orphan_grace: options.orphan_grace,
        })
    }

    /// What a greeting to this head says.
    pub(crate) fn inventory(&self, head: &str, present: InventorySnapshot) -> Inventory {
        let address = self.address.clone().or_else(|| local_address(head));
        let address = address.unwrap_or_else(|| self.name.clone());
        let network = self.links.network.or_else(|| network::speed_at(&address));
        Inventory {
            name: self.name.clone(),
            links: LinkBandwidths { network, ..self.links },
            sharing: self.sharing,
            rendezvous_ports: self.ports.as_ref().map(|ports| ports.free.clone()).unwrap_or_default(),
            address,
            cpus: self.cpus,
            memory: self.memory,
            devices: present.devices,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            isolation: self.isolation.clone(),
            orphan_grace: self.orphan_grace,
            held: present.held,
        }
    }
}

fn host_name() -> Result<String, WorkerError> {
    let name = nix::unistd::gethostname().map_err(|errno| WorkerError::Machine(errno.into()))?;
    Ok(name.to_string_lossy().into_owned())
}

fn memory() -> Result<Bytes, WorkerError> {
    let memory = procfs::Meminfo::current().map_err(|error| WorkerError::Machine(io::Error::other(error)))?;
    Ok(Bytes(memory.mem_total))
}

/// The address from which this machine reaches the head. Nothing is sent for it.
fn local_address(head: &str) -> Option<String> {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).and_then(|socket| socket.connect(head).map(|()| socket));
    let socket = socket.or_else(|_| UdpSocket::bind(("::", 0)).and_then(|s| s.connect(head).map(|()| s)));
    Some(socket.ok()?.local_addr().ok()?.ip().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_on_this_machine_is_reached_from_this_machine() {
        assert_eq!(local_address("127.0.0.1:7070").as_deref(), Some("127.0.0.1"));
        assert_eq!(local_address("no such host"), None);
    }
}
