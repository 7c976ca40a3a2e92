//! Jobs whose cores and host memory may change: each group of jobs is as sensitive as one of the measured
//! models.
//!
//! A trace does not tell what a job would do with more cores. So each group draws a table, and its jobs take
//! any share from one core for each GPU, and the least memory of the table, to all that a machine has. Jobs
//! that fit one machine run on one; wider ones keep the proportional share of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_policy::{SensitivityProfiles, SensitivityTable};
use cohabit_types::{Bytes, Demand, GpuRequest, HostShare, Spread};

use super::Workload;
use crate::machine_spec::MachineSpec;
use crate::random::Random;

/// Tables that groups of jobs draw.
pub type SensitivityTables = BTreeMap<String, Arc<SensitivityTable>>;

impl Workload {
    /// The same jobs with ranges of cores and memory on these machines, and the table of each group.
    #[must_use]
    pub fn with_ranges(
        mut self,
        machines: &[MachineSpec],
        tables: &SensitivityTables,
        seed: u64,
    ) -> (Workload, SensitivityProfiles) {
        let (mut profiles, all) = (SensitivityProfiles::default(), tables.values().collect::<Vec<_>>());
        let Some(smallest) = smallest(machines).filter(|_| !all.is_empty()) else { return (self, profiles) };
        for job in &mut self.jobs {
            let Some(group) = job.spec.group.clone() else { continue };
            let mut draws = Random::stream(seed, &format!("sensitivity of {group}"));
            let table = Arc::clone(draws.pick::<&Arc<SensitivityTable>>(&all));
            job.spec.demand = ranged(&job.spec.demand, &table, &smallest);
            profiles.insert(group, table);
        }
        (self, profiles)
    }
}

/// What every machine has at least.
struct SmallestMachine {
    devices: u32,
    host: HostShare,
}

impl SmallestMachine {
    /// The part of its cores and memory that belongs to so many of its devices.
    fn proportional(&self, devices: u32) -> HostShare {
        let part = |amount: u64| amount * u64::from(devices) / u64::from(self.devices);
        HostShare { cpus: part(self.host.cpus.into()) as u32, memory: Bytes(part(self.host.memory.0)) }
    }
}

fn smallest(machines: &[MachineSpec]) -> Option<SmallestMachine> {
    let devices = machines.iter().map(|machine| machine.devices).min()?;
    let host = machines.iter().map(|it| HostShare { cpus: it.cpus, memory: it.memory });
    Some(SmallestMachine { devices: devices.max(1), host: host.reduce(HostShare::at_most)? })
}

fn ranged(demand: &Demand, table: &SensitivityTable, machine: &SmallestMachine) -> Demand {
    let devices = demand.total_devices();
    if devices <= machine.devices {
        let (least, most) = range(table, devices.max(1), machine);
        let up_to = Some(most).filter(|most| *most != least);
        let one_node = Demand { nodes: 1, spread: Spread::Even, ..*demand };
        return Demand { cpus: least.cpus, memory: least.memory, up_to, ..one_node };
    }
    let nodes = devices.div_ceil(machine.devices);
    if !devices.is_multiple_of(nodes) {
        return *demand;
    }
    let on_each = devices / nodes;
    let HostShare { cpus, memory } = machine.proportional(on_each);
    Demand { nodes, gpus: GpuRequest::Whole(on_each), spread: Spread::Even, cpus, memory, ..*demand }
}

/// The least and the most that a job on one machine takes. Where it is unknown how much memory it needs, that
/// is its proportional share of the machine.
fn range(table: &SensitivityTable, devices: u32, machine: &SmallestMachine) -> (HostShare, HostShare) {
    let floor = table.memory().first().copied().unwrap_or_default() * f64::from(devices);
    let (memory, most) = match floor > 0.0 {
        true => (Bytes(floor.ceil() as u64), machine.host),
        false => {
            let HostShare { memory, .. } = machine.proportional(devices);
            (memory, HostShare { memory, ..machine.host })
        }
    };
    (HostShare { cpus: devices, memory }.at_most(most), most)
}
