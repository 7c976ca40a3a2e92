//! From an order to a running rank: the rank waits until its GPUs are ready, and is started then.

use cohabit_types::{DeviceId, Outcome, RankId, RankRun, RunOrder, Share, StartFailure, Time};

use crate::environment::{environment, rendezvous_port};
use crate::gpu_admission::{GpuAdmission, admit_exclusive, admit_shared};
use crate::interface::{GpuAccess, Lease, MpsOrder, RankExit, RankStart, WorkerEffect};
use crate::rank::{RankEntry, RankState};
use crate::state::Worker;

impl Worker {
    /// Starts an attempt once. If it has ended already, the head has not received that report.
    pub(crate) fn run(&mut self, now: Time, order: RunOrder, out: &mut Vec<WorkerEffect>) {
        self.prefetched.remove(&order.attempt);
        if self.ranks_of(order.attempt).next().is_some() {
            let ended = self.ranks_of(order.attempt).filter(|(_, held)| !held.is_live());
            return ended.for_each(|(rank, _)| self.report_rank(*rank, out));
        }
        let exists = |id: &DeviceId| self.devices.iter().any(|device| device.id == *id);
        let missing = order.ranks.iter().flat_map(|run| &run.devices).find(|id| !exists(id));
        let refusal = missing.map(|device| StartFailure::DeviceMissing(device.to_string()));
        for run in &order.ranks {
            let start = rank_start(&order, run);
            let rank = start.rank;
            self.ranks.insert(rank, RankEntry::waiting(start));
            if let Some(failure) = &refusal {
                self.spawn_failed(now, rank, failure.clone(), out);
            }
        }
        // Most attempts need neither, and what an executor is told takes time to write.
        if let (None, Some(first)) = (refusal, order.ranks.first()) {
            if order.spec.code.is_some() {
                self.fetch_code(rank_start(&order, first), out);
            }
            if order.checkpoints.is_some() {
                self.fetch_checkpoints(rank_start(&order, first), out);
            }
        }
    }

    /// Starts the ranks whose code, checkpoints and GPUs are ready, and orders what the others need.
    pub(crate) fn admit_waiting(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        for rank in self.waiting() {
            if !self.has_code(rank) || self.awaits_checkpoints(rank) {
                continue;
            }
            let admissions = self.gpu_admissions(rank);
            if let Some(failure) = refusal(&admissions) {
                self.spawn_failed(now, rank, failure, out);
                continue;
            }
            for (device, order) in orders(&admissions) {
                self.order(device, order, out);
            }
            let granted =
                granted(&admissions).and_then(|access| self.ranks.get_mut(&rank)?.release(now, access));
            out.extend(granted.map(WorkerEffect::Spawn));
        }
    }

    /// The ranks that wait for their code, their checkpoints or their GPUs.
    pub(crate) fn waiting(&self) -> Vec<RankId> {
        let waiting = self.ranks.iter().filter(|(_, held)| matches!(held.state, RankState::Waiting(_)));
        waiting.map(|(rank, _)| *rank).collect()
    }

    /// The admission of a waiting rank to each of its GPUs.
    fn gpu_admissions(&self, rank: RankId) -> Vec<(DeviceId, GpuAdmission)> {
        let Some(RankEntry { state: RankState::Waiting(start), .. }) = self.ranks.get(&rank) else {
            return Vec::new();
        };
        let gpus = start.devices.iter().filter_map(|id| Some((id, self.gpus.get(id)?)));
        gpus.map(|(id, gpu)| {
            let rank_counts = self.rank_counts(id);
            let admission = match start.share < Share::WHOLE {
                true => admit_shared(gpu, rank_counts, start),
                false => admit_exclusive(gpu, rank_counts),
            };
            (id.clone(), admission)
        })
        .collect()
    }

    pub(crate) fn spawned(&mut self, now: Time, rank: RankId, out: &mut Vec<WorkerEffect>) {
        let Some(held) = self.ranks.get_mut(&rank) else { return };
        let RankState::Starting(sequence) = &held.state else { return };
        let stop = sequence.stop();
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

    /// The user of the rank has no account on this host.
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
        let is_new = |held: &RankEntry| matches!(held.state, RankState::Waiting(_) | RankState::Starting(_));
        if self.ranks.get(&rank).is_some_and(is_new) {
            let ending = RankExit { outcome: Outcome::NotStarted(failure), stopped: None, at: now };
            self.exited(rank, ending, out);
        }
    }
}

/// The first reason why the rank can never start.
fn refusal(admissions: &[(DeviceId, GpuAdmission)]) -> Option<StartFailure> {
    admissions.iter().find_map(|(_, admission)| match admission {
        GpuAdmission::Refused(failure) => Some(failure.clone()),
        GpuAdmission::Granted(_) | GpuAdmission::NeedsOrder(_) | GpuAdmission::Later => None,
    })
}

/// The orders that MPS daemons need before the rank can start.
fn orders(admissions: &[(DeviceId, GpuAdmission)]) -> impl Iterator<Item = (&DeviceId, MpsOrder)> {
    admissions.iter().filter_map(|(device, admission)| match admission {
        GpuAdmission::NeedsOrder(order) => Some((device, order.clone())),
        GpuAdmission::Granted(_) | GpuAdmission::Later | GpuAdmission::Refused(_) => None,
    })
}

/// The access of the rank to its GPUs, if all are ready.
fn granted(admissions: &[(DeviceId, GpuAdmission)]) -> Option<GpuAccess> {
    admissions.iter().try_fold(GpuAccess::None, |_, (_, admission)| match admission {
        GpuAdmission::Granted(access) => Some(*access),
        GpuAdmission::NeedsOrder(_) | GpuAdmission::Later | GpuAdmission::Refused(_) => None,
    })
}

/// What the executor of this rank will be told. The end of its time limit is computed before it waits for its
/// GPUs, so it is never too late.
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
        application: order.application.clone(),
        place: order.place.clone(),
        node_rank: run.node_rank,
        checkpoints: order.checkpoints.clone(),
        note: None,
        idle_after: order.idle_after,
    }
}
