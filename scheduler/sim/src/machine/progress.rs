//! How fast the processes of a machine work: as their gang's place allows, and as is true of the company on
//! their devices.

use cohabit_policy::interference::{ColocationEstimate, ColocationSet};
use cohabit_types::{DeviceId, RankId, Time};

use super::{Machine, Outbox, RankSignalKind};
use crate::process::RankProcess;

impl Machine {
    /// Sets the rate of every process that shares a device with this one, which came or went.
    pub(super) fn retime(&mut self, now: Time, changed: RankId, out: &mut Outbox) {
        let Some(devices) = self.processes.get(&changed).map(|process| &process.start.devices) else {
            return;
        };
        let met = |process: &RankProcess| process.start.devices.iter().any(|device| devices.contains(device));
        let affected = self.running().filter(|(rank, process)| *rank == changed || met(process));
        let slowdowns: Vec<(RankId, f64)> =
            affected.map(|(rank, it)| (rank, self.slowdown(rank, it))).collect();
        for (rank, slowdown) in slowdowns {
            let Some(process) = self.processes.get_mut(&rank) else { continue };
            process.tenancy.changes(now, slowdown, self.hardware.max_slowdown);
            // What hangs, or is being cleared up, does nothing, but is still in the way.
            let idle = process.hangs || process.ending.is_some();
            let rate = if idle { 0.0 } else { process.pace / slowdown };
            if let Some(done_at) = process.work.retime(now, rate) {
                out.pulse(done_at.max(now), rank, RankSignalKind::Finish { timing: process.work.timing });
            }
        }
    }

    fn running(&self) -> impl Iterator<Item = (RankId, &RankProcess)> {
        self.all().filter(|(_, process)| process.runs()).map(|(rank, process)| (*rank, process))
    }

    /// Those that run on a device.
    pub(super) fn at_work<'m>(
        &'m self,
        device: &'m DeviceId,
    ) -> impl Iterator<Item = (RankId, &'m RankProcess)> {
        self.running().filter(|(_, process)| process.start.devices.contains(device))
    }

    /// A process on several devices is as slow as on the most crowded of them; a gang that is slow because of
    /// its network is no faster on devices of its own.
    fn slowdown(&self, rank: RankId, process: &RankProcess) -> f64 {
        let fates = process.start.devices.iter().flat_map(|device| self.fate(device));
        fates.filter(|(member, _)| *member == rank).map(|(_, fate)| fate.slowdown).fold(1.0, f64::max)
    }

    /// What is true of those that run on a device.
    pub(super) fn fate(&self, device: &DeviceId) -> Vec<(RankId, ColocationEstimate)> {
        let (ranks, members): (Vec<RankId>, Vec<_>) =
            self.at_work(device).map(|(rank, process)| (rank, process.member.clone())).unzip();
        let set = ColocationSet { gpu: self.gpu_kind.clone(), sharing: None, members };
        let fates = self.hardware.truth.predict(std::slice::from_ref(&set));
        ranks.into_iter().zip(fates.into_iter().flatten()).collect()
    }
}
