//! The simplest choice of place: the first nodes, and on them the first devices, that have room.

use cohabit_proto::{Placement, RankPlacement};

use crate::{FreeNodes, PendingJob, Place, Shortage};

/// Takes nodes in the order in which they joined and devices in the order in which their worker lists them.
#[derive(Debug, Default, Clone, Copy)]
pub struct FirstFit;

impl Place for FirstFit {
    fn place(&mut self, job: &PendingJob, free: &FreeNodes) -> Result<(Placement, String), Shortage> {
        let mut parts = Vec::new();
        let mut shortages = Vec::new();
        for node in free.nodes() {
            match node.devices_for(&job.demand) {
                Ok(devices) => {
                    parts.push(RankPlacement { node: node.id, devices, share: job.demand.share() })
                }
                Err(shortage) => shortages.push(shortage),
            }
            if parts.len() == job.demand.nodes as usize {
                return Ok((Placement { parts }, String::new()));
            }
        }
        Err(summary(job.demand.nodes, parts.len() as u32, shortages))
    }
}

/// One shortage for all nodes: that of the node which came nearest.
fn summary(needed: u32, found: u32, shortages: Vec<Shortage>) -> Shortage {
    if found > 0 || needed as usize > shortages.len() && !shortages.is_empty() {
        return Shortage::NodesAtOnce { needed, found };
    }
    shortages.into_iter().max_by_key(nearness).unwrap_or(Shortage::Nodes)
}

/// How near a node came: past its devices, then past their memory; among equals, with the most left.
fn nearness(shortage: &Shortage) -> (u8, u64) {
    match shortage {
        Shortage::Nodes | Shortage::NodesAtOnce { .. } => (0, 0),
        Shortage::Devices { whole, share, .. } => (1, u64::from(*whole) * 1_000 + u64::from(share.0)),
        Shortage::Memory { free, .. } => (2, free.0),
        Shortage::Cpus { free, .. } => (3, u64::from(*free)),
        Shortage::HostMemory { free, .. } => (4, free.0),
    }
}
