//! From an order to a running rank: it waits until its GPUs are ready for it, and is started then.

use cohabit_types::{DeviceId, Outcome, RankId, RankRun, RunOrder, Share, StartFailure, StopReason, Time};

use crate::access::{self, GpuAdmission};
use crate::environment::{environment, rendezvous_port};
use crate::rank::{Held, RankState};
use crate::{GpuAccess, Lease, MpsOrder, RankExit, RankStart, Worker, WorkerEffect};

impl Worker {
    /// An attempt is started once. If it has ended meanwhile, the head has not heard of that.
    pub(crate) fn run(&mut self, now: Time, order: RunOrder, out: &mut Vec<WorkerEffect>) {
        if self.of(order.attempt).next().is_some() {
            let ended = self.of(order.attempt).filter(|(_, held)| !held.is_live());
            return ended.for_each(|(rank, _)| self.report_rank(*rank, out));
        }
        let exists = |id: &DeviceId| self.devices.iter().any(|device| device.id == *id);
        let missing = order.ranks.iter().flat_map(|run| &run.devices).find(|id| !exists(id));
        let refusal = missing.map(|device| StartFailure::DeviceMissing(device.to_string()));
        for run in &order.ranks {
            let start = rank_start(&order, run);
            let rank = start.rank;
            self.ranks.insert(rank, Held::waiting(start));
            if let Some(failure) = &refusal {
                self.spawn_failed(now, rank, failure.clone(), out);
            }
        }
    }

    /// Starts the ranks whose GPUs are ready, and sees to it that those of the others will be.
    pub(crate) fn admit_waiting(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        for rank in self.waiting() {
            let asked = self.gpu_admissions(rank);
            if let Some(failure) = refusal(&asked) {
                self.spawn_failed(now, rank, failure, out);
                continue;
            }
            for (device, order) in orders(&asked) {
                self.order(device, order, out);
            }
            let granted = granted(&asked).and_then(|access| self.ranks.get_mut(&rank)?.release(access));
            out.extend(granted.map(WorkerEffect::Spawn));
        }
    }

    /// The ranks that wait for their GPUs.
    pub(crate) fn waiting(&self) -> Vec<RankId> {
        let waiting = self.ranks.iter().filter(|(_, held)| matches!(held.life, RankState::Waiting(_)));
        waiting.map(|(rank, _)| *rank).collect()
    }

    /// What each of its GPUs says to a rank that waits; nobody has anything to say where it has none.
    fn gpu_admissions(&self, rank: RankId) -> Vec<(DeviceId, GpuAdmission)> {
        let Some(Held { life: RankState::Waiting(start), .. }) = self.ranks.get(&rank) else {
            return Vec::new();
        };
        let gpus = start.devices.iter().filter_map(|id| Some((id, self.gpus.get(id)?)));
        gpus.map(|(id, gpu)| {
            let rank_counts = self.rank_counts(id);
            let admission = match start.share < Share::WHOLE {
                true => access::admit_shared(gpu, rank_counts, &start.spec.demand, start.share),
                false => access::admit_exclusive(gpu, rank_counts),
            };
            (id.clone(), admission)
        })
        .collect()
    }

    pub(crate) fn spawned(&mut self, now: Time, rank: RankId, out: &mut Vec<WorkerEffect>) {
        let Some(held) = self.ranks.get_mut(&rank) else { return };
        let RankState::Starting { stop } = held.life else { return };
        held.start(now);
        self.report_rank(rank, out);
        if !self.is_linked() {
            out.push(WorkerEffect::Lease(rank, Lease::Orphaned));
        }
        self.report_time_slicing(now, rank, out);
        if let Some(why) = stop {
            self.stop_rank(now, rank, why, out);
        }
    }

    /// Its user has no account here.
    pub(crate) fn record_private_user(&mut self, rank: RankId, uid: u32, out: &mut Vec<WorkerEffect>) {
        let Some(held) = self.ranks.get_mut(&rank).filter(|held| held.is_live()) else { return };
        held.private_uid = Some(uid);
        let report = held.report_user(rank);
        self.report(report, out);
    }

    pub(crate) fn spawn_failed(
        &mut self,
        now: Time,
        rank: RankId,
        failure: StartFailure,
        out: &mut Vec<WorkerEffect>,
    ) {
        let is_new = |held: &Held| matches!(held.life, RankState::Waiting(_) | RankState::Starting { .. });
        if self.ranks.get(&rank).is_some_and(is_new) {
            let ending = RankExit { outcome: Outcome::NotStarted(failure), stopped: None, at: now };
            self.exited(rank, ending, out);
        }
    }
}

/// The first reason why a rank may never start.
fn refusal(asked: &[(DeviceId, GpuAdmission)]) -> Option<StartFailure> {
    asked.iter().find_map(|(_, admission)| match admission {
        GpuAdmission::Refused(failure) => Some(failure.clone()),
        GpuAdmission::Granted(_) | GpuAdmission::After(_) | GpuAdmission::Later => None,
    })
}

/// What MPS daemons have to be told before a rank may start.
fn orders(asked: &[(DeviceId, GpuAdmission)]) -> impl Iterator<Item = (&DeviceId, MpsOrder)> {
    asked.iter().filter_map(|(device, admission)| match admission {
        GpuAdmission::After(order) => Some((device, *order)),
        GpuAdmission::Granted(_) | GpuAdmission::Later | GpuAdmission::Refused(_) => None,
    })
}

/// How a rank comes to its GPUs, if all are ready.
fn granted(asked: &[(DeviceId, GpuAdmission)]) -> Option<GpuAccess> {
    asked.iter().try_fold(GpuAccess::None, |_, (_, admission)| match admission {
        GpuAdmission::Granted(access) => Some(*access),
        GpuAdmission::After(_) | GpuAdmission::Later | GpuAdmission::Refused(_) => None,
    })
}

/// The end of a rank that was stopped while it waited.
pub(crate) fn never_started(now: Time, why: StopReason) -> RankExit {
    let failure = StartFailure::Other("it was stopped while it waited for its GPU".into());
    RankExit { outcome: Outcome::NotStarted(failure), stopped: Some(why), at: now }
}

/// A job that is told when it has to stop is told too early by the time that it waits for its GPUs, never too
/// late.
pub(crate) fn rank_start(order: &RunOrder, run: &RankRun) -> RankStart {
    RankStart {
        rank: order.attempt.rank(run.rank),
        spec: order.spec.clone(),
        user: order.user.clone(),
        account: order.account.clone(),
        role: order.role,
        private_uid: None,
        devices: run.devices.clone(),
        share: run.share,
        access: GpuAccess::None,
        rendezvous_port: rendezvous_port(order, run),
        environment: environment(order, run),
    }
}
