//! From an order to a running rank: it waits until its GPUs are ready for it, and is started then.

use cohabit_types::{DeviceId, Outcome, RankId, RankRun, RunOrder, Share, StartFailure, StopReason, Time};

use crate::access::{self, Admission};
use crate::environment::{environment, rendezvous_port};
use crate::rank::{Held, Life};
use crate::{Effect, Ending, GpuAccess, Lease, MpsOrder, RankStart, Worker};

impl Worker {
    /// An attempt is started once. If it has ended meanwhile, the head has not heard of that.
    pub(crate) fn run(&mut self, now: Time, order: RunOrder, out: &mut Vec<Effect>) {
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
    pub(crate) fn admit_waiting(&mut self, now: Time, out: &mut Vec<Effect>) {
        for rank in self.waiting() {
            let asked = self.ask_gpus(rank);
            if let Some(failure) = refusal(&asked) {
                self.spawn_failed(now, rank, failure, out);
                continue;
            }
            for (device, order) in orders(&asked) {
                self.order(device, order, out);
            }
            let granted = granted(&asked).and_then(|access| self.ranks.get_mut(&rank)?.release(access));
            out.extend(granted.map(Effect::Spawn));
        }
    }

    /// The ranks that wait for their GPUs.
    pub(crate) fn waiting(&self) -> Vec<RankId> {
        let waiting = self.ranks.iter().filter(|(_, held)| matches!(held.life, Life::Waiting(_)));
        waiting.map(|(rank, _)| *rank).collect()
    }

    /// What each of its GPUs says to a rank that waits; nobody has anything to say where it has none.
    fn ask_gpus(&self, rank: RankId) -> Vec<(DeviceId, Admission)> {
        let Some(Held { life: Life::Waiting(start), .. }) = self.ranks.get(&rank) else { return Vec::new() };
        let gpus = start.devices.iter().filter_map(|id| Some((id, self.gpus.get(id)?)));
        gpus.map(|(id, gpu)| {
            let company = self.company(id);
            let admission = match start.share < Share::WHOLE {
                true => access::shared(gpu, company, &start.spec.demand, start.share),
                false => access::alone(gpu, company),
            };
            (id.clone(), admission)
        })
        .collect()
    }

    pub(crate) fn spawned(&mut self, now: Time, rank: RankId, out: &mut Vec<Effect>) {
        let Some(held) = self.ranks.get_mut(&rank) else { return };
        let Life::Starting { stop } = held.life else { return };
        held.start(now);
        self.report_rank(rank, out);
        if !self.is_linked() {
            out.push(Effect::Lease(rank, Lease::Orphaned));
        }
        self.note_turns(now, rank, out);
        if let Some(why) = stop {
            self.stop_rank(now, rank, why, out);
        }
    }

    /// Its user has no account here.
    pub(crate) fn runs_as(&mut self, rank: RankId, uid: u32, out: &mut Vec<Effect>) {
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
        out: &mut Vec<Effect>,
    ) {
        let is_new = |held: &Held| matches!(held.life, Life::Waiting(_) | Life::Starting { .. });
        if self.ranks.get(&rank).is_some_and(is_new) {
            let ending = Ending { outcome: Outcome::NotStarted(failure), stopped: None, at: now };
            self.exited(rank, ending, out);
        }
    }
}

/// The first reason why a rank may never start.
fn refusal(asked: &[(DeviceId, Admission)]) -> Option<StartFailure> {
    asked.iter().find_map(|(_, admission)| match admission {
        Admission::Refused(failure) => Some(failure.clone()),
        Admission::Granted(_) | Admission::After(_) | Admission::Later => None,
    })
}

/// What MPS daemons have to be told before a rank may start.
fn orders(asked: &[(DeviceId, Admission)]) -> impl Iterator<Item = (&DeviceId, MpsOrder)> {
    asked.iter().filter_map(|(device, admission)| match admission {
        Admission::After(order) => Some((device, *order)),
        Admission::Granted(_) | Admission::Later | Admission::Refused(_) => None,
    })
}

/// How a rank comes to its GPUs, if all are ready.
fn granted(asked: &[(DeviceId, Admission)]) -> Option<GpuAccess> {
    asked.iter().try_fold(GpuAccess::None, |_, (_, admission)| match admission {
        Admission::Granted(access) => Some(*access),
        Admission::After(_) | Admission::Later | Admission::Refused(_) => None,
    })
}

/// The end of a rank that was stopped while it waited.
pub(crate) fn never_started(now: Time, why: StopReason) -> Ending {
    let failure = StartFailure::Other("it was stopped while it waited for its GPU".into());
    Ending { outcome: Outcome::NotStarted(failure), stopped: Some(why), at: now }
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
