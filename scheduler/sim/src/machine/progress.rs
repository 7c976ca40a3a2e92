//! How fast the processes of a machine work: by the placement of their gang, and by the true slowdown of
//! processes that share a device.

use cohabit_policy::interference::{ColocationEstimate, ColocationSet};
use cohabit_types::{DeviceId, RankId, Time};

use super::{Outbox, RankTimerKind, SimMachine};
use crate::process::{RankProcess, ReportSchedule};

impl SimMachine {
    /// Recomputes the rate of every process that shares a device with this one, which has started or ended.
    pub(super) fn retime(&mut self, now: Time, changed: RankId, out: &mut Outbox) {
        let Some(devices) = self.processes.get(&changed).map(|process| &process.start.devices) else {
            return;
        };
        let met = |process: &RankProcess| process.start.devices.iter().any(|device| devices.contains(device));
        let affected = self.running().filter(|(rank, process)| *rank == changed || met(process));
        let affected: Vec<RankId> = affected.map(|(rank, _)| rank).collect();
        affected.into_iter().for_each(|rank| self.update_rate(now, rank, out));
    }

    /// Recomputes the rate of a process from the processes on its devices.
    pub(super) fn update_rate(&mut self, now: Time, rank: RankId, out: &mut Outbox) {
        let Some(process) = self.processes.get(&rank).filter(|process| process.runs()) else { return };
        let (slowdown, host_speed) = (self.slowdown(rank, process), self.host_speed(rank.attempt, process));
        let Some(process) = self.processes.get_mut(&rank) else { return };
        process.slowdown.record(now, slowdown, self.hardware.max_slowdown);
        process.share_speed.record(now, host_speed);
        // A process that does no work still slows the others.
        let rate = if process.is_idle() { 0.0 } else { process.speed * host_speed / slowdown };
        if process.reports_adaptively() {
            process.reporting.restart(now);
            if rate > 0.0 {
                let restarts = process.reporting.restarts;
                out.schedule(now + ReportSchedule::FIRST, rank, RankTimerKind::Progress { restarts });
            }
        }
        if let Some(done_at) = process.work.retime(now, rate) {
            out.schedule(done_at.max(now), rank, RankTimerKind::Finish { timing: process.work.timing });
        }
    }

    fn running(&self) -> impl Iterator<Item = (RankId, &RankProcess)> {
        self.all().filter(|(_, process)| process.runs()).map(|(rank, process)| (*rank, process))
    }

    /// The ranks that run on a device.
    pub(super) fn running_on<'m>(
        &'m self,
        device: &'m DeviceId,
    ) -> impl Iterator<Item = (RankId, &'m RankProcess)> {
        self.running().filter(|(_, process)| process.start.devices.contains(device))
    }

    /// The largest slowdown over the devices of a process. A gang that is slow because of its network is no
    /// faster on devices of its own.
    fn slowdown(&self, rank: RankId, process: &RankProcess) -> f64 {
        let estimates = process.start.devices.iter().flat_map(|device| self.predict_colocation(device));
        estimates
            .filter(|(member, _)| *member == rank)
            .map(|(_, estimate)| estimate.slowdown)
            .fold(1.0, f64::max)
    }

    /// The true effect of the ranks that run on a device on each other.
    pub(super) fn predict_colocation(&self, device: &DeviceId) -> Vec<(RankId, ColocationEstimate)> {
        let (ranks, members): (Vec<RankId>, Vec<_>) =
            self.running_on(device).map(|(rank, process)| (rank, process.member.clone())).unzip();
        let set = ColocationSet { gpu: self.gpu_kind.clone(), sharing: None, members };
        let estimates = self.hardware.truth.predict(std::slice::from_ref(&set));
        ranks.into_iter().zip(estimates.into_iter().flatten()).collect()
    }
}
