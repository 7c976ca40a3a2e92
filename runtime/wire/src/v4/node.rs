//! Nodes as peers of protocol 4 know them: their workers run the jobs of all users. Frozen: not a field may
//! change.

use cohabit_types::{
    Bytes, Enforcement, HeldRank, JobId, LinkBandwidths, NodeId, NodeState, SharingLimits, Span, Time,
};
use serde::{Deserialize, Serialize};

use super::device::{Device, DeviceRecord};

/// What a worker says about its machine when it joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// For people: the host name unless the worker was given another.
    pub name: String,
    /// Where other nodes reach this one.
    pub address: String,
    /// Processor cores.
    pub cpus: u32,
    /// Host memory.
    pub memory: Bytes,
    /// In the order in which they are filled.
    pub devices: Vec<Device>,
    /// Version of the worker.
    pub build: String,
    /// How fast devices reach each other, as far as it is known.
    pub links: LinkBandwidths,
    /// How far those of its devices that have memory of their own may be shared.
    pub sharing: SharingLimits,
    /// Ports at which ranks on it may wait for others; nothing else uses them.
    pub rendezvous_ports: Vec<u16>,
    /// What it keeps apart.
    pub isolation: Isolation,
    /// How long its ranks go on while the head cannot be reached.
    pub orphan_grace: Span,
    /// Ranks that it holds, and those whose end it has yet to see acknowledged.
    pub held_ranks: Vec<HeldRank>,
}

/// The record of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The id.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: NodeState,
    /// Why ranks do not start on it, until one does.
    pub problem: Option<String>,
    /// Where other nodes reach it.
    pub address: String,
    /// Version of its worker.
    pub build: String,
    /// Its cores.
    pub cpus: u32,
    /// Cores that jobs claim.
    pub cpus_used: u32,
    /// Its memory.
    pub memory: Bytes,
    /// Memory that jobs claim.
    pub memory_used: Bytes,
    /// Its devices and the jobs on them.
    pub devices: Vec<DeviceRecord>,
    /// How fast its devices reach each other, as far as it is known.
    pub links: LinkBandwidths,
    /// How far its devices may be shared.
    pub sharing: SharingLimits,
    /// What its worker keeps apart.
    pub isolation: Isolation,
    /// Jobs that run on it.
    pub jobs: Vec<JobId>,
    /// When its state last changed.
    pub since: Time,
}

/// The isolation that a worker provides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// Whether jobs of different users run as different accounts.
    pub users: UserIsolation,
    /// Whether a job gets no more cores and host memory than it claims.
    pub host_limits: Enforcement,
}

/// The accounts as which a worker runs jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserIsolation {
    /// All as the worker's own account: they reach each other's files and processes.
    Together,
    /// Each as the account of its user, or as a user of its own where there is no such account.
    Apart,
}

impl From<cohabit_types::Isolation> for Isolation {
    fn from(isolation: cohabit_types::Isolation) -> Isolation {
        let cohabit_types::Isolation { users, host_limits, devices: _ } = isolation;
        let users = match users {
            cohabit_types::UserIsolation::Apart => UserIsolation::Apart,
            cohabit_types::UserIsolation::Together | cohabit_types::UserIsolation::OneAccount(_) => {
                UserIsolation::Together
            }
        };
        Isolation { users, host_limits }
    }
}

impl From<Isolation> for cohabit_types::Isolation {
    fn from(isolation: Isolation) -> cohabit_types::Isolation {
        let Isolation { users, host_limits } = isolation;
        let users = match users {
            UserIsolation::Together => cohabit_types::UserIsolation::Together,
            UserIsolation::Apart => cohabit_types::UserIsolation::Apart,
        };
        cohabit_types::Isolation { users, host_limits, ..cohabit_types::Isolation::default() }
    }
}

impl From<cohabit_types::Inventory> for Inventory {
    fn from(inventory: cohabit_types::Inventory) -> Inventory {
        let cohabit_types::Inventory {
            name,
            address,
            cpus,
            memory,
            devices,
            build,
            links,
            sharing,
            max_jobs: _,
            rendezvous_ports,
            isolation,
            fetches_code: _,
            prefetches: _,
            application_ports: _,
            changes_host_shares: _,
            orphan_grace,
            held_ranks,
        } = inventory;
        Inventory {
            name,
            address,
            cpus,
            memory,
            devices: devices.into_iter().map(Device::from).collect(),
            build,
            links,
            sharing,
            rendezvous_ports,
            isolation: isolation.into(),
            orphan_grace,
            held_ranks,
        }
    }
}

impl From<Inventory> for cohabit_types::Inventory {
    fn from(inventory: Inventory) -> cohabit_types::Inventory {
        let Inventory {
            name,
            address,
            cpus,
            memory,
            devices,
            build,
            links,
            sharing,
            rendezvous_ports,
            isolation,
            orphan_grace,
            held_ranks,
        } = inventory;
        cohabit_types::Inventory {
            name,
            address,
            cpus,
            memory,
            devices: devices.into_iter().map(Into::into).collect(),
            build,
            links,
            sharing,
            max_jobs: None,
            rendezvous_ports,
            isolation: isolation.into(),
            fetches_code: false,
            prefetches: false,
            application_ports: false,
            changes_host_shares: false,
            orphan_grace,
            held_ranks,
        }
    }
}

impl From<cohabit_types::NodeRecord> for NodeRecord {
    fn from(record: cohabit_types::NodeRecord) -> NodeRecord {
        let cohabit_types::NodeRecord {
            id,
            name,
            state,
            problem,
            drain: _,
            address,
            build,
            cpus,
            cpus_used,
            memory,
            memory_used,
            devices,
            links,
            sharing,
            isolation,
            jobs,
            since,
        } = record;
        NodeRecord {
            id,
            name,
            state,
            problem,
            address,
            build,
            cpus,
            cpus_used,
            memory,
            memory_used,
            devices: devices.into_iter().map(DeviceRecord::from).collect(),
            links,
            sharing,
            isolation: isolation.into(),
            jobs,
            since,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_of_protocol_4_takes_a_node_for_one_account_for_one_that_separates_nobody() {
        let users = cohabit_types::UserIsolation::OneAccount("ada".into());
        let isolation = cohabit_types::Isolation {
            users,
            host_limits: Enforcement::Enforced,
            devices: Enforcement::Enforced,
        };
        assert_eq!(Isolation::from(isolation).users, UserIsolation::Together);
    }
}
