//! The properties of this host, as the head learns them.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::thread::available_parallelism;

use cohabit_host::cgroup::{Cgroups, process_limit};
use cohabit_net::open_file_limit;
use cohabit_types::{
    Bytes, Device, Enforcement, Inventory, Isolation, LinkBandwidths, NodeId, SharingLimits, Span,
};
use procfs::Current;

use crate::error::WorkerError;
use crate::isolation::Isolator;
use crate::job_limit::job_limit;
use crate::messages::InventorySnapshot;
use crate::network;
use crate::options::WorkerOptions;
use crate::ports::PortBlock;

/// The part of the inventory that does not change while the daemon runs.
#[derive(Debug, Clone)]
pub(crate) struct MachineInfo {
    pub(crate) name: String,
    /// The address at which other nodes reach it, if configured.
    address: Option<String>,
    cpus: u32,
    memory: Bytes,
    /// The devices as they were when the daemon started.
    pub(crate) devices: Vec<Device>,
    /// As configured.
    links: LinkBandwidths,
    /// How far its GPUs may be shared.
    sharing: SharingLimits,
    /// The most jobs that it runs at once.
    max_jobs: u32,
    /// `None` if other workers on this host use all ports.
    ports: Option<Arc<PortBlock>>,
    /// Whether applications may listen at them.
    application_ports: bool,
    /// How it isolates jobs.
    isolation: Isolation,
    orphan_grace: Span,
}

impl MachineInfo {
    /// Reads the properties of this host, which has these devices. Claims ports for rendezvous. Blocks.
    ///
    /// # Errors
    /// When the properties cannot be read.
    pub(crate) fn probe(
        options: &WorkerOptions,
        node: NodeId,
        devices: Vec<Device>,
        isolator: &Isolator,
    ) -> Result<MachineInfo, WorkerError> {
        let ports = PortBlock::claim(node.0.as_u128());
        if ports.is_none() {
            tracing::warn!(
                "other workers use all ports for rendezvous: jobs on this host get no MASTER_PORT"
            );
        }
        // A job is promised what the kernel lets it have.
        let limit = isolator.cgroups().map_or(Bytes(u64::MAX), Cgroups::memory_of_ranks);
        let memory = memory()?.min(limit);
        let cpus = available_parallelism().map_err(WorkerError::Machine)?;
        Ok(MachineInfo {
            name: options.name.clone().map_or_else(host_name, Ok)?,
            address: options.address.clone(),
            cpus: u32::try_from(cpus.get()).unwrap_or(u32::MAX),
            memory,
            devices,
            links: options.links,
            sharing: options.sharing,
            max_jobs: options
                .max_jobs
                .unwrap_or_else(|| job_limit(memory, open_file_limit(), process_limit())),
            ports: ports.map(Arc::new),
            application_ports: options.application_ports,
            isolation: isolator.report(),
            orphan_grace: options.orphan_grace,
        })
    }

    /// The inventory that is sent to this head. Resolves names, and so may block.
    pub(crate) fn inventory(&self, head: &str, present: InventorySnapshot) -> Inventory {
        let address = self.address.clone().or_else(|| local_address(head));
        let address = address.unwrap_or_else(|| self.name.clone());
        let network = self.links.network.or_else(|| network::speed_at(&address));
        Inventory {
            fetches_code: true,
            prefetches: true,
            application_ports: self.application_ports,
            changes_host_shares: self.isolation.host_limits == Enforcement::Enforced,
            name: self.name.clone(),
            links: LinkBandwidths { network, ..self.links },
            sharing: self.sharing,
            max_jobs: Some(self.max_jobs),
            rendezvous_ports: self.ports.as_ref().map(|ports| ports.free.clone()).unwrap_or_default(),
            address,
            cpus: self.cpus,
            memory: self.memory,
            devices: present.devices,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            isolation: self.isolation.clone(),
            orphan_grace: self.orphan_grace,
            held_ranks: present.held_ranks,
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

/// The address from which this host reaches the head. Sends nothing.
fn local_address(head: &str) -> Option<String> {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).and_then(|socket| socket.connect(head).map(|()| socket));
    let socket = socket.or_else(|_| UdpSocket::bind(("::", 0)).and_then(|s| s.connect(head).map(|()| s)));
    Some(socket.ok()?.local_addr().ok()?.ip().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_head_is_reached_from_the_local_address() {
        assert_eq!(local_address("127.0.0.1:7070").as_deref(), Some("127.0.0.1"));
        assert_eq!(local_address("no such host"), None);
    }
}
