//! How ranks share GPUs: the MPS daemons that serve them, faults that they suffer together, whether their
//! limits are enforced, and how fast they get on beside each other.

use std::collections::BTreeMap;

use cohabit_types::{
    DeviceId, DeviceSharing, Enforcement, EnforcementRequirement, RankId, Report, SharingStrategy,
    StopReason, Time,
};

use crate::access::RankCounts;
use crate::rank::{Held, RankState};
use crate::service::MpsState;
use crate::stretches::RankColocation;
use crate::{GpuAccess, MpsEvent, MpsOrder, Worker, WorkerEffect};

impl Worker {
    /// What follows from whatever has happened. The head hears of a condition before it hears of ranks that
    /// are refused because of it.
    pub(crate) fn update_gpus(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        self.report_conditions(out);
        self.admit_waiting(now, out);
        self.maintain_mps_daemons(now, out);
        self.update_colocation(out);
    }

    pub(crate) fn order(&mut self, device: &DeviceId, order: MpsOrder, out: &mut Vec<WorkerEffect>) {
        if let Some(gpu) = self.gpus.get_mut(device) {
            gpu.service_mut().order(order);
            out.push(WorkerEffect::Mps(device.clone(), order));
        }
    }

    pub(crate) fn handle_mps(
        &mut self,
        now: Time,
        device: &DeviceId,
        word: MpsEvent,
        out: &mut Vec<WorkerEffect>,
    ) {
        let Some(fault) = self.gpus.get_mut(device).and_then(|gpu| gpu.apply(now, word)) else { return };
        for rank in self.clients(device) {
            let why = match fault.culprit == Some(rank) {
                true => StopReason::MpsFault,
                false => StopReason::MpsFaultVictim,
            };
            self.stop_rank(now, rank, why, out);
        }
    }

    /// A rank that insists on its limits does not go on without them.
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

    /// The limits of a rank that takes turns are not enforced, for the reason that its GPU gives.
    pub(crate) fn report_time_slicing(&mut self, now: Time, rank: RankId, out: &mut Vec<WorkerEffect>) {
        let Some(Held { access: GpuAccess::TimeSliced(_), devices, .. }) = self.ranks.get(&rank) else {
            return;
        };
        let gpu = devices.first().and_then(|id| Some(self.gpus.get(id)?.sharing(self.rank_counts(id))));
        let why = match gpu {
            Some(DeviceSharing::Unenforced(why) | DeviceSharing::Alone(why)) => why,
            Some(DeviceSharing::Enforced) | None => "it was started without MPS".into(),
        };
        self.record_enforcement(now, rank, Enforcement::Unenforced(why), out);
    }

    /// The live ranks on a device, by how they come to it.
    pub(crate) fn rank_counts(&self, device: &DeviceId) -> RankCounts {
        let mut rank_counts = RankCounts::default();
        self.live_on(device).for_each(|(_, held)| rank_counts.add(held.access));
        rank_counts
    }

    pub(crate) fn live_on<'w>(&'w self, device: &'w DeviceId) -> impl Iterator<Item = (RankId, &'w Held)> {
        let here = |held: &&Held| held.is_live() && held.devices.contains(device);
        self.ranks.iter().map(|(rank, held)| (*rank, held)).filter(move |(_, held)| here(held))
    }

    pub(crate) fn check_gpus(&self) {
        for (device, gpu) in &self.gpus {
            let (rank_counts, service) = (self.rank_counts(device), gpu.service());
            let serves = matches!(service, MpsState::Up { .. } | MpsState::Adopting | MpsState::Faulted(_));
            assert!(
                rank_counts.clients == 0 || serves,
                "{device} has MPS clients, its daemon is {service:?}"
            );
            let is_idle = matches!(service, MpsState::Idle);
            assert!(
                rank_counts.exclusive == 0 || is_idle,
                "{device} is not shared, its daemon is {service:?}"
            );
            let in_fault = matches!(service, MpsState::Faulted(_));
            assert!(
                rank_counts.clients > 0 || !in_fault,
                "{device} has lost its clients and does not recover"
            );
        }
    }

    fn clients(&self, device: &DeviceId) -> Vec<RankId> {
        let clients = self.live_on(device).filter(|(_, held)| matches!(held.access, GpuAccess::Mps(_)));
        clients.map(|(rank, _)| rank).collect()
    }

    fn report_conditions(&mut self, out: &mut Vec<WorkerEffect>) {
        if !self.is_linked() {
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
        self.stretches.settle(self.colocations());
        if self.is_linked() {
            let rows = self.stretches.take_rows();
            self.report((!rows.is_empty()).then_some(Report::Stretches(rows)), out);
        }
    }

    /// Where every rank runs that has exactly one GPU.
    fn colocations(&self) -> BTreeMap<RankId, RankColocation> {
        let running = |held: &Held| matches!(held.life, RankState::Running { .. });
        let place = |rank: &RankId, held: &Held| {
            let [device] = &held.devices[..] else { return None };
            let beside = self.live_on(device).filter(|(other, held)| other != rank && running(held));
            Some(RankColocation {
                device: device.clone(),
                gpu: self.gpus.get(device)?.model(),
                sharing: colocation_sharing(held.access)?,
                neighbours: beside.map(|(other, _)| other).collect(),
            })
        };
        let here = self.ranks.iter().filter(|(_, held)| running(held));
        here.filter_map(|(rank, held)| Some((*rank, place(rank, held)?))).collect()
    }
}

/// The live ranks on each device that has some, by how they come to it.
fn rank_counts_by_device(ranks: &BTreeMap<RankId, Held>) -> BTreeMap<&DeviceId, RankCounts> {
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
