//! GPU sharing: the MPS daemons that serve ranks, faults that their clients suffer together, whether limits
//! are enforced, and samples of ranks that run beside each other.

use std::collections::BTreeMap;

use cohabit_types::{
    DeviceId, DeviceSharing, Enforcement, EnforcementRequirement, RankId, Report, SharingStrategy,
    StopReason, Time,
};

use crate::colocation::RankColocation;
use crate::gpu::RankCounts;
use crate::interface::{GpuAccess, MpsEvent, WorkerEffect};
use crate::mps_state::MpsState;
use crate::rank::{RankEntry, RankState};
use crate::state::Worker;

impl Worker {
    /// The consequences for GPUs after each event. The head hears of a condition before it hears of ranks
    /// that are refused because of it.
    pub(crate) fn update_gpus(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        self.report_conditions(out);
        self.admit_waiting(now, out);
        self.maintain_mps_daemons(now, out);
        self.update_colocation(out);
    }

    pub(crate) fn handle_mps(
        &mut self,
        now: Time,
        device: &DeviceId,
        event: MpsEvent,
        out: &mut Vec<WorkerEffect>,
    ) {
        let Some(fault) = self.gpus.get_mut(device).and_then(|gpu| gpu.apply(now, event)) else { return };
        for rank in self.clients(device) {
            let why = match fault.culprit == Some(rank) {
                true => StopReason::MpsFault,
                false => StopReason::MpsFaultVictim,
            };
            self.stop_rank(now, rank, why, out);
        }
    }

    /// A rank that requires enforced limits is stopped if they are not enforced.
    pub(crate) fn record_enforcement(
        &mut self,
        now: Time,
        rank: RankId,
        enforcement: Enforcement,
        out: &mut Vec<WorkerEffect>,
    ) {
        let Some(held) = self.ranks.get_mut(&rank).filter(|held| held.is_live()) else { return };
        if held.enforcement.as_ref() == Some(&enforcement) {
            return;
        }
        let is_broken = match (&enforcement, held.limits) {
            (Enforcement::Unenforced(_), EnforcementRequirement::Enforced) => true,
            (Enforcement::Enforced, _) | (Enforcement::Unenforced(_), EnforcementRequirement::BestEffort) => {
                false
            }
        };
        held.enforcement = Some(enforcement);
        let report = held.report_sharing(rank);
        self.report(report, out);
        if is_broken {
            self.stop_rank(now, rank, StopReason::Unenforced, out);
        }
    }

    /// The limits of a time-sliced rank are not enforced, for the reason that its GPU gives.
    pub(crate) fn report_time_slicing(&mut self, now: Time, rank: RankId, out: &mut Vec<WorkerEffect>) {
        let Some(RankEntry { access: GpuAccess::TimeSliced(_), devices, .. }) = self.ranks.get(&rank) else {
            return;
        };
        let gpu = devices.first().and_then(|id| Some(self.gpus.get(id)?.sharing(self.rank_counts(id))));
        let why = match gpu {
            Some(DeviceSharing::Unenforced(why) | DeviceSharing::Alone(why)) => why,
            Some(DeviceSharing::Enforced | DeviceSharing::OneUser(_)) | None => {
                "it was started without MPS".into()
            }
        };
        self.record_enforcement(now, rank, Enforcement::Unenforced(why), out);
    }

    pub(crate) fn check_gpus(&self) {
        for (device, gpu) in &self.gpus {
            let (rank_counts, service) = (self.rank_counts(device), gpu.service());
            let serves = matches!(service, MpsState::Up { .. } | MpsState::Adopting | MpsState::Faulted(_));
            assert!(
                rank_counts.clients == 0 || serves,
                "{device} has MPS clients while its daemon is {service:?}"
            );
            let is_idle = matches!(service, MpsState::Idle);
            assert!(
                rank_counts.exclusive == 0 || is_idle,
                "{device} is used exclusively while its daemon is {service:?}"
            );
            let in_fault = matches!(service, MpsState::Faulted(_));
            assert!(
                rank_counts.clients > 0 || !in_fault,
                "{device} has lost all clients of a fault and does not recover"
            );
        }
    }

    fn report_conditions(&mut self, out: &mut Vec<WorkerEffect>) {
        if !self.is_linked() || self.gpus.is_empty() {
            return;
        }
        let rank_counts_by_device = rank_counts_by_device(&self.ranks);
        for (device, gpu) in &mut self.gpus {
            let unreported_condition =
                gpu.unreported_condition(rank_counts_by_device.get(device).copied().unwrap_or_default());
            let report = |condition| Report::Condition { device: device.clone(), condition };
            out.extend(unreported_condition.map(report).map(WorkerEffect::Report));
        }
    }

    fn maintain_mps_daemons(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        if self.gpus.is_empty() {
            return;
        }
        let rank_counts_by_device = rank_counts_by_device(&self.ranks);
        let upkeep = self.gpus.iter_mut().filter_map(|(device, gpu)| {
            let rank_counts = rank_counts_by_device.get(device).copied().unwrap_or_default();
            Some((device.clone(), gpu.upkeep(now, rank_counts)?))
        });
        for (device, order) in upkeep.collect::<Vec<_>>() {
            self.order(&device, order, out);
        }
    }

    fn update_colocation(&mut self, out: &mut Vec<WorkerEffect>) {
        // A host without GPUs has no samples to take, however many ranks it runs.
        if self.gpus.is_empty() {
            return;
        }
        self.colocation.update(self.colocations());
        if self.is_linked() {
            let rows = self.colocation.take_rows();
            self.report((!rows.is_empty()).then_some(Report::ColocationSamples(rows)), out);
        }
    }

    /// The device and neighbors of every running rank with exactly one GPU.
    fn colocations(&self) -> BTreeMap<RankId, RankColocation> {
        let running = |held: &RankEntry| matches!(held.state, RankState::Running { .. });
        let colocation = |rank: &RankId, held: &RankEntry| {
            let [device] = &held.devices[..] else { return None };
            let beside = self.live_on(device).filter(|(other, held)| other != rank && running(held));
            Some(RankColocation {
                device: device.clone(),
                gpu: self.gpus.get(device)?.model(),
                sharing: colocation_sharing(held.access)?,
                neighbors: beside.map(|(other, _)| other).collect(),
            })
        };
        let here = self.ranks.iter().filter(|(_, held)| running(held));
        here.filter_map(|(rank, held)| Some((*rank, colocation(rank, held)?))).collect()
    }
}

/// How many live ranks are on each device that has any, by their access.
fn rank_counts_by_device(ranks: &BTreeMap<RankId, RankEntry>) -> BTreeMap<&DeviceId, RankCounts> {
    let mut rank_counts_by_device: BTreeMap<&DeviceId, RankCounts> = BTreeMap::new();
    for held in ranks.values().filter(|held| held.is_live()) {
        for device in &held.devices {
            rank_counts_by_device.entry(device).or_default().add(held.access);
        }
    }
    rank_counts_by_device
}

const fn colocation_sharing(access: GpuAccess) -> Option<SharingStrategy> {
    match access {
        GpuAccess::None => None,
        GpuAccess::Exclusive => Some(SharingStrategy::Exclusive),
        GpuAccess::Mps(_) => Some(SharingStrategy::Mps),
        GpuAccess::TimeSliced(_) => Some(SharingStrategy::TimeSliced),
    }
}
