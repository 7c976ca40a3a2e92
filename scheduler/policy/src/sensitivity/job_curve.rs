//! A table as one job on one node sees it: how fast it is with a share of the node, relative to the
//! proportional share.

use std::sync::Arc;

use cohabit_types::{Bytes, HostShare};

use super::table::SensitivityTable;

/// What is close enough to the best: within this part of it.
const KNEE: f64 = 0.99;

/// The sensitivity `W` of a job on a node.
#[derive(Debug, Clone, PartialEq)]
pub struct JobCurve {
    table: Arc<SensitivityTable>,
    devices: f64,
    /// The speed at the node's proportional share for one device.
    reference: f64,
}

impl JobCurve {
    /// The curve of a job with so many devices on a node with this proportional share for one device.
    #[must_use]
    pub fn new(table: Arc<SensitivityTable>, devices: u32, proportional: HostShare) -> JobCurve {
        let devices = f64::from(devices.max(1));
        let reference = table.speed(cores(proportional, 1.0), memory(proportional, 1.0));
        JobCurve { table, devices, reference: if reference > 0.0 { reference } else { 1.0 } }
    }

    /// How fast the job is with this share: 1 at the proportional one. A resource that it does not claim is
    /// not limited.
    #[must_use]
    pub fn speed(&self, share: HostShare) -> f64 {
        self.table.speed(cores(share, self.devices), memory(share, self.devices)) / self.reference
    }

    /// The next larger numbers of cores at which the table has a speed, up to the most.
    pub(crate) fn core_steps(&self, from: u32, most: u32) -> impl Iterator<Item = u32> {
        let levels = self.table.cores().iter().map(move |level| (level * self.devices).ceil() as u32);
        levels.chain([most]).filter(move |level| (from + 1..=most).contains(level))
    }

    /// The next larger amounts of memory at which the table has a speed, up to the most.
    pub(crate) fn memory_steps(&self, from: Bytes, most: Bytes) -> impl Iterator<Item = Bytes> {
        let levels = self.table.memory().iter().map(move |level| Bytes((level * self.devices).ceil() as u64));
        levels.chain([most]).filter(move |level| *level > from && *level <= most)
    }

    /// Whether the table tells speeds at several amounts of memory.
    pub(crate) fn knows_memory(&self) -> bool {
        self.table.memory().len() > 1
    }

    /// The least share, from `least` on, that is as fast as `wanted`, but for one percent: fewer cores first,
    /// then less memory, if the table tells what that costs.
    pub(crate) fn knee(&self, least: HostShare, wanted: HostShare) -> HostShare {
        let enough = self.speed(wanted) * KNEE;
        let with_cores = |cpus: &u32| self.speed(HostShare { cpus: *cpus, ..wanted }) >= enough;
        let mut cpus: Vec<u32> = self.core_steps(least.cpus, wanted.cpus).collect();
        cpus.push(least.cpus);
        cpus.sort_unstable();
        let cpus = cpus.into_iter().find(with_cores).unwrap_or(wanted.cpus);
        if !self.knows_memory() {
            return HostShare { cpus, ..wanted };
        }
        let with_memory = |memory: &Bytes| self.speed(HostShare { cpus, memory: *memory }) >= enough;
        let mut memory: Vec<Bytes> = self.memory_steps(least.memory, wanted.memory).collect();
        memory.push(least.memory);
        memory.sort_unstable();
        let memory = memory.into_iter().find(with_memory).unwrap_or(wanted.memory);
        HostShare { cpus, memory }
    }
}

fn cores(share: HostShare, devices: f64) -> f64 {
    if share.cpus == 0 { f64::MAX } else { f64::from(share.cpus) / devices }
}

fn memory(share: HostShare, devices: f64) -> f64 {
    if share.memory == Bytes::ZERO { f64::MAX } else { share.memory.0 as f64 / devices }
}
