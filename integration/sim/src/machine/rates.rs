//! How fast the processes of a machine work: as their gang's place allows, and as the law says for the
//! company on their devices.

use cohabit_proto::{DeviceId, RankId, Time};

use super::{Beat, Machine, Outbox};
use crate::process::Process;

impl Machine {
    /// Sets the rate of every process that shares a device with this one, which came or went.
    pub(super) fn retime(&mut self, now: Time, changed: RankId, out: &mut Outbox) {
        let Some(devices) = self.processes.get(&changed).map(|process| &process.start.devices) else {
            return;
        };
        let met = |process: &Process| process.start.devices.iter().any(|device| devices.contains(device));
        let affected = self.running().filter(|(rank, process)| *rank == changed || met(process));
        let rates: Vec<(RankId, f64)> = affected.map(|(rank, it)| (rank, self.rate(rank, it))).collect();
        for (rank, rate) in rates {
            let Some(process) = self.processes.get_mut(&rank) else { continue };
            if let Some(done_at) = process.work.retime(now, rate) {
                out.pulse(done_at.max(now), rank, Beat::Finish { timing: process.work.timing });
            }
        }
    }

    fn running(&self) -> impl Iterator<Item = (RankId, &Process)> {
        self.processes.iter().filter(|(_, process)| process.runs()).map(|(rank, process)| (*rank, process))
    }

    /// A process on several devices is as fast as on the most crowded of them; a gang that is slow because
    /// of its network is no faster on devices of its own. What hangs does nothing, but is still in the way.
    fn rate(&self, rank: RankId, process: &Process) -> f64 {
        if process.hangs {
            return 0.0;
        }
        let slowdowns = process.start.devices.iter().map(|device| self.slowdown(rank, device));
        process.pace / slowdowns.fold(1.0, f64::max)
    }

    fn slowdown(&self, rank: RankId, device: &DeviceId) -> f64 {
        let set: Vec<_> = self.running().filter(|(_, it)| it.start.devices.contains(device)).collect();
        let busy: Vec<f64> = set.iter().map(|(_, process)| process.program.busy).collect();
        let slowdowns = self.law.slowdowns(&busy);
        set.iter()
            .zip(slowdowns)
            .find(|((member, _), _)| *member == rank)
            .map_or(1.0, |(_, slowdown)| slowdown)
    }
}
