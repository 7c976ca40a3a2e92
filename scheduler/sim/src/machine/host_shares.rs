//! The cores and the host memory that the ranks of an attempt may use together, as the machine enforces them.

use std::sync::Arc;

use cohabit_policy::JobCurve;
use cohabit_types::{AttemptId, Bytes, HostShare, JobSpec, RankId, Time};

use super::{Outbox, SimMachine};
use crate::process::RankProcess;

/// The speed of a job that has less memory than it needs.
const THRASHING: f64 = 0.1;

impl SimMachine {
    /// What the ranks of an attempt may use together; nothing if it has none here.
    pub(crate) fn host_share(&self, attempt: AttemptId) -> Option<HostShare> {
        let (_, process) = self.processes_of(attempt).next()?;
        Some(self.host_shares.get(&attempt).copied().unwrap_or(process.start.spec.demand.least_host()))
    }

    /// Sets what the ranks of an attempt may use together.
    pub(crate) fn set_host_share(
        &mut self,
        now: Time,
        attempt: AttemptId,
        share: HostShare,
        out: &mut Outbox,
    ) {
        let ranks: Vec<RankId> = self.processes_of(attempt).map(|(rank, _)| *rank).collect();
        if !ranks.is_empty() {
            self.accounts.allotments += u64::from(self.host_share(attempt) != Some(share));
            self.host_shares.insert(attempt, share);
            ranks.into_iter().for_each(|rank| self.update_rate(now, rank, out));
        }
    }

    /// How fast a job is with a share of this machine, where that matters to it.
    pub(super) fn curve(&self, spec: &JobSpec) -> Option<JobCurve> {
        let (_, table) = self.hardware.sensitivity.find_for(spec)?;
        let devices = self.shape.devices.max(1);
        let (cpus, memory) = (self.shape.cpus / devices, Bytes(self.shape.memory.0 / u64::from(devices)));
        Some(JobCurve::new(Arc::clone(table), spec.demand.devices(), HostShare { cpus, memory }))
    }

    /// How fast a process is with its share: 1 with the proportional one.
    pub(super) fn host_speed(&self, attempt: AttemptId, process: &RankProcess) -> f64 {
        let Some(curve) = &process.curve else { return 1.0 };
        self.host_share(attempt).map_or(1.0, |share| curve.speed(share).max(THRASHING))
    }

    /// Forgets the share of an attempt of which nothing is left.
    pub(super) fn forget_host_share(&mut self, attempt: AttemptId) {
        if self.processes_of(attempt).next().is_none() {
            self.host_shares.remove(&attempt);
        }
    }

    fn processes_of(&self, attempt: AttemptId) -> impl Iterator<Item = (&RankId, &RankProcess)> {
        let ranks = attempt.rank(0)..=attempt.rank(u32::MAX);
        self.processes.range(ranks).map(|(rank, process)| (rank, &**process))
    }
}
