//! What the processes of a machine hold now and have used so far, from outside the cores' books.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{AttemptId, Bytes, Demand, Device, Outcome, RankId, Share, Time};

use super::{Machine, SharedRunTime};
use crate::process::RankProcess;

/// What became of the processes that have ended.
#[derive(Debug, Default)]
pub(crate) struct ProcessOutcomes {
    /// Device time used by attempts, in thousandths of a device times microseconds.
    pub(crate) device_time: BTreeMap<AttemptId, u64>,
    /// How ranks really ended.
    pub(crate) outcomes: BTreeMap<RankId, Outcome>,
    /// Ranks of whose end no disk tells any more, although it was written down.
    pub(crate) forgotten: BTreeSet<RankId>,
    /// Ranks that another one's fault on their GPU brought down.
    pub(crate) victims: BTreeSet<RankId>,
    /// Of those that may have neighbours.
    pub(crate) shared_run_time: SharedRunTime,
}

impl ProcessOutcomes {
    pub(super) fn close(&mut self, now: Time, rank: RankId, process: &RankProcess, outcome: &Outcome) {
        *self.device_time.entry(rank.attempt).or_default() += process.device_time(now);
        self.outcomes.insert(rank, outcome.clone());
        if process.start.spec.demand.may_have_neighbours() {
            self.shared_run_time = self.shared_run_time + process.tenancy.until(now);
        }
    }
}

impl Machine {
    /// Of what the processes together hold more than there is.
    pub(crate) fn overload(&self) -> Option<String> {
        let over_device = self.shape.devices().iter().find_map(|device| self.overload_of(device));
        let attempts: BTreeMap<AttemptId, Demand> =
            self.live().map(|(rank, process)| (rank.attempt, process.start.spec.demand)).collect();
        let cpus: u32 = attempts.values().map(|demand| demand.cpus).sum();
        let memory: Bytes = attempts.values().map(|demand| demand.memory).sum();
        let over_host = cpus > self.shape.cpus || memory > self.shape.memory;
        over_device.or_else(|| over_host.then(|| format!("{cpus} cores and {memory} of the host are taken")))
    }

    /// Who shares a device with memory of its own leaves a reserve, and is one of not too many.
    fn overload_of(&self, device: &Device) -> Option<String> {
        let on_it: Vec<&RankProcess> = self
            .live()
            .map(|(_, process)| process)
            .filter(|it| it.start.devices.contains(&device.id))
            .collect();
        let share: Share = on_it.iter().map(|process| process.start.share).sum();
        let memory: Bytes = on_it.iter().filter_map(|process| process.start.spec.demand.gpu_memory).sum();
        let limits = self.shape.sharing;
        let is_shared = on_it.iter().any(|process| process.start.share < Share::WHOLE);
        let reserve = if is_shared { limits.reserve } else { Bytes::ZERO };
        let is_over = device.memory.is_some_and(|all| memory + reserve > all);
        let is_crowded = device.memory.is_some() && on_it.len() > limits.max_ranks as usize;
        (share > Share::WHOLE || is_over || is_crowded).then(|| {
            let ranks = on_it.len();
            format!("{share} and {memory} of device {} are taken by {ranks} ranks", device.id)
        })
    }
}
