//! Whether the processes of a machine together take more than it has, counted from the processes themselves.

use std::collections::BTreeSet;

use cohabit_types::{AttemptId, Bytes, Device, HostShare, Share, Time};

use super::SimMachine;
use crate::process::RankProcess;

impl SimMachine {
    /// Describes the first resource of which the processes together take more than the machine has.
    pub(crate) fn overload(&self, now: Time) -> Option<String> {
        let over_device = self.shape.devices().iter().find_map(|device| self.overload_of(now, device));
        let attempts: BTreeSet<AttemptId> = self.busy(now).map(|(rank, _)| rank.attempt).collect();
        let shares = attempts.into_iter().filter_map(|attempt| self.host_share(attempt));
        let taken = shares.fold(HostShare::default(), HostShare::plus);
        let has = HostShare { cpus: self.shape.cpus, memory: self.shape.memory };
        over_device.or_else(|| (!taken.is_within(has)).then(|| format!("{taken} of the host are taken")))
    }

    /// Checks shares and memory of one device. A shared device also keeps a reserve of memory and limits the
    /// number of ranks.
    fn overload_of(&self, now: Time, device: &Device) -> Option<String> {
        let on_it: Vec<&RankProcess> = self
            .busy(now)
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
