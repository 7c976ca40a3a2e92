//! Which jobs did not fit into the memory of a device together, told from how a rank ended.
//!
//! A rank that reached an enforced limit of its own, that held more than its job demanded, or that was being
//! stopped says nothing about its neighbors. Nothing is kept here: the shell remembers, and predictors learn.

use cohabit_types::{
    DeviceId, DeviceSharing, Enforcement, JobId, NodeId, Outcome, RankId, Share, SharingStrategy, Time,
};

use crate::head::Head;
use crate::interface::{Effect, MemoryMisfit};
use crate::job::{Attempt, Job, Rank, RankPhase};
use crate::node::DeviceUse;
use crate::transition::Transition;

impl Transition<'_> {
    /// Has the shell remember what this end of a live rank says of the jobs on its device. Comes before the
    /// rank leaves the device.
    pub(crate) fn record_misfit(&mut self, rank: RankId, outcome: &Outcome, at: Time) {
        if matches!(outcome, Outcome::OutOfGpuMemory { .. }) {
            let misfit = self.head.misfit(rank, at);
            misfit.into_iter().for_each(|misfit| self.effect(Effect::RecordMisfit(misfit)));
        }
    }
}

impl Head {
    /// The jobs on the device of a live rank that found no memory left; `None` if that says nothing about
    /// them.
    fn misfit(&self, rank: RankId, at: Time) -> Option<MemoryMisfit> {
        let job = self.jobs.get(&rank.attempt.job)?;
        let attempt = job.live_attempt().filter(|attempt| !is_being_stopped(job, attempt))?;
        let failed = attempt.ranks.get(rank.rank as usize)?;
        let device = self.only_device(failed).filter(|device| device.device.memory.is_some())?;
        let share = attempt.share_of(failed.node, &device.device.id);
        let is_running = |other: &&JobId| self.runs_on(**other, failed.node, &device.device.id);
        let others = || device.jobs.iter().filter(|other| **other != rank.attempt.job);
        let neighbors: Vec<JobId> = others().filter(is_running).copied().collect();
        // Jobs that have not started yet may or may not hold memory already.
        let is_certain = !neighbors.is_empty() || others().next().is_none();
        (is_certain && !has_own_limit(failed, device, share)).then(|| MemoryMisfit {
            rank,
            device: device.device.id.clone(),
            gpu: device.device.model.clone(),
            sharing: sharing_strategy(device, share),
            neighbors,
            at,
        })
    }

    /// The device of a rank that holds exactly one: of several, nobody knows which was full.
    fn only_device(&self, rank: &Rank) -> Option<&DeviceUse> {
        let [id] = &rank.devices[..] else { return None };
        self.nodes.get(&rank.node)?.devices.iter().find(|device| device.device.id == *id)
    }

    /// Whether a process of this job runs on the device.
    fn runs_on(&self, job: JobId, node: NodeId, device: &DeviceId) -> bool {
        let attempt = self.jobs.get(&job).and_then(|job| job.live_attempt());
        let here = |rank: &Rank| rank.node == node && rank.devices.contains(device);
        attempt.is_some_and(|it| it.ranks.iter().any(|rank| rank.phase == RankPhase::Running && here(rank)))
    }
}

impl Attempt {
    fn share_of(&self, node: NodeId, device: &DeviceId) -> Share {
        let mut parts = self.placement.parts.iter();
        let part = parts.find(|part| part.node == node && part.devices.contains(device));
        part.map_or(Share::WHOLE, |part| part.share)
    }
}

fn is_being_stopped(job: &Job, attempt: &Attempt) -> bool {
    job.stop_requested().or(attempt.stop_reported).is_some()
}

/// Whether a limit on the rank's own memory was enforced. A rank that fails at once may fail before its
/// worker has seen whether it is.
fn has_own_limit(rank: &Rank, device: &DeviceUse, share: Share) -> bool {
    match &rank.enforcement {
        Some(Enforcement::Enforced) => true,
        Some(Enforcement::Unenforced(_)) => false,
        None => sharing_strategy(device, share) == SharingStrategy::Mps,
    }
}

/// How jobs share the device, in the terms of samples: a job with all of it uses no MPS.
fn sharing_strategy(device: &DeviceUse, share: Share) -> SharingStrategy {
    match &device.device.condition.sharing {
        DeviceSharing::Enforced | DeviceSharing::OneUser(_) if share < Share::WHOLE => SharingStrategy::Mps,
        DeviceSharing::Unenforced(_) if share < Share::WHOLE => SharingStrategy::TimeSliced,
        DeviceSharing::Enforced
        | DeviceSharing::OneUser(_)
        | DeviceSharing::Unenforced(_)
        | DeviceSharing::Alone(_) => SharingStrategy::Exclusive,
    }
}
