//! What the processes of a machine hold now and have used so far, from outside the cores' books.

use std::collections::BTreeMap;

use cohabit_proto::{AttemptId, Bytes, Demand, DeviceId, Outcome, RankId, Share, Time};

use super::Machine;
use crate::process::Process;

/// What became of the processes that have ended.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// Device time used by attempts, in thousandths of a device times microseconds.
    pub(crate) device_time: BTreeMap<AttemptId, u64>,
    /// How ranks really ended.
    pub(crate) outcomes: BTreeMap<RankId, Outcome>,
}

impl Accounts {
    pub(super) fn close(&mut self, now: Time, rank: RankId, process: &Process, outcome: &Outcome) {
        *self.device_time.entry(rank.attempt).or_default() += process.device_time(now);
        self.outcomes.insert(rank, outcome.clone());
    }
}

impl Machine {
    /// Of what the processes together hold more than there is.
    pub(crate) fn overload(&self) -> Option<String> {
        let over_device = self.shape.devices().into_iter().find_map(|device| {
            let (share, memory) = self.held(&device.id);
            let over_memory = device.memory.is_some_and(|all| memory > all);
            (share > Share::WHOLE || over_memory)
                .then(|| format!("{share} and {memory} of device {} are taken", device.id))
        });
        let attempts: BTreeMap<AttemptId, Demand> =
            self.live().map(|(rank, process)| (rank.attempt, process.start.spec.demand)).collect();
        let cpus: u32 = attempts.values().map(|demand| demand.cpus).sum();
        let memory: Bytes = attempts.values().map(|demand| demand.memory).sum();
        let over_host = cpus > self.shape.cpus || memory > self.shape.memory;
        over_device.or_else(|| over_host.then(|| format!("{cpus} cores and {memory} of the host are taken")))
    }

    fn held(&self, device: &DeviceId) -> (Share, Bytes) {
        let on_it = || self.live().filter(|(_, process)| process.start.devices.contains(device));
        let share = on_it().map(|(_, process)| process.start.share).sum();
        let memory = on_it().filter_map(|(_, process)| process.start.spec.demand.gpu_memory).sum();
        (share, memory)
    }
}
