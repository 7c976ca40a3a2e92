//! How ranks share GPUs: the MPS daemons that serve them, faults that they suffer together, whether their
//! limits are enforced, and how fast they get on beside each other.

use std::collections::BTreeMap;

use cohabit_types::{
    DeviceId, DeviceSharing, Enforcement, Limits, RankId, Report, StopReason, StretchSharing, Time,
};

use crate::access::Company;
use crate::rank::{Held, Life};
use crate::service::Service;
use crate::stretches::Place;
use crate::{Effect, GpuAccess, MpsOrder, MpsWord, Worker};

impl Worker {
    /// What follows from whatever has happened. The head hears of a condition before it hears of ranks that
    /// are refused because of it.
    pub(crate) fn settle_gpus(&mut self, now: Time, out: &mut Vec<Effect>) {
        self.report_conditions(out);
        self.admit_waiting(now, out);
        self.look_after_services(now, out);
        self.settle_stretches(out);
    }

    pub(crate) fn order(&mut self, device: &DeviceId, order: MpsOrder, out: &mut Vec<Effect>) {
        if let Some(gpu) = self.gpus.get_mut(device) {
            gpu.service_mut().order(order);
            out.push(Effect::Mps(device.clone(), order));
        }
    }

    pub(crate) fn mps(&mut self, now: Time, device: &DeviceId, word: MpsWord, out: &mut Vec<Effect>) {
        let Some(fault) = self.gpus.get_mut(device).and_then(|gpu| gpu.hear(now, word)) else { return };
        for rank in self.clients(device) {
            let why = match fault.culprit == Some(rank) {
                true => StopReason::MpsFault,
                false => StopReason::MpsFaultVictim,
            };
            self.stop_rank(now, rank, why, out);
        }
    }

    /// A rank that insists on its limits does not go on without them.
    pub(crate) fn shares(
        &mut self,
        now: Time,
        rank: RankId,
        enforcement: Enforcement,
        out: &mut Vec<Effect>,
    ) {
        let Some(held) = self.ranks.get_mut(&rank).filter(|held| held.is_live()) else { return };
        if held.enforcement.as_ref() == Some(&enforcement) {
            return;
        }
        let is_broken = match (&enforcement, held.limits) {
            (Enforcement::Unenforced(_), Limits::Enforced) => true,
            (Enforcement::Enforced, _) | (Enforcement::Unenforced(_), Limits::BestEffort) => false,
        };
        held.enforcement = Some(enforcement);
        let report = held.report_sharing(rank);
        self.report(report, out);
        if is_broken {
            self.stop_rank(now, rank, StopReason::Unenforced, out);
        }
    }

    /// The limits of a rank that takes turns are not enforced, for the reason that its GPU gives.
    pub(crate) fn note_turns(&mut self, now: Time, rank: RankId, out: &mut Vec<Effect>) {
        let Some(Held { access: GpuAccess::TimeSliced(_), devices, .. }) = self.ranks.get(&rank) else {
            return;
        };
        let gpu = devices.first().and_then(|id| Some(self.gpus.get(id)?.sharing(self.company(id))));
        let why = match gpu {
            Some(DeviceSharing::Unenforced(why) | DeviceSharing::Alone(why)) => why,
            Some(DeviceSharing::Enforced) | None => "it was started without MPS".into(),
        };
        self.shares(now, rank, Enforcement::Unenforced(why), out);
    }

    /// The live ranks on a device, by how they come to it.
    pub(crate) fn company(&self, device: &DeviceId) -> Company {
        let mut company = Company::default();
        self.live_on(device).for_each(|(_, held)| company.add(held.access));
        company
    }

    pub(crate) fn live_on<'w>(&'w self, device: &'w DeviceId) -> impl Iterator<Item = (RankId, &'w Held)> {
        let here = |held: &&Held| held.is_live() && held.devices.contains(device);
        self.ranks.iter().map(|(rank, held)| (*rank, held)).filter(move |(_, held)| here(held))
    }

    pub(crate) fn check_gpus(&self) {
        for (device, gpu) in &self.gpus {
            let (company, service) = (self.company(device), gpu.service());
            let serves = matches!(service, Service::Up { .. } | Service::Adopting | Service::Faulted(_));
            assert!(company.clients == 0 || serves, "{device} has MPS clients, its daemon is {service:?}");
            let is_idle = matches!(service, Service::Idle);
            assert!(company.exclusive == 0 || is_idle, "{device} is not shared, its daemon is {service:?}");
            let in_fault = matches!(service, Service::Faulted(_));
            assert!(company.clients > 0 || !in_fault, "{device} has lost its clients and does not recover");
        }
    }

    fn clients(&self, device: &DeviceId) -> Vec<RankId> {
        let clients = self.live_on(device).filter(|(_, held)| matches!(held.access, GpuAccess::Mps(_)));
        clients.map(|(rank, _)| rank).collect()
    }

    fn report_conditions(&mut self, out: &mut Vec<Effect>) {
        if !self.is_linked() {
            return;
        }
        let companies = companies(&self.ranks);
        for (device, gpu) in &mut self.gpus {
            let untold = gpu.untold(companies.get(device).copied().unwrap_or_default());
            let report = |condition| Report::Condition { device: device.clone(), condition };
            out.extend(untold.map(report).map(Effect::Report));
        }
    }

    fn look_after_services(&mut self, now: Time, out: &mut Vec<Effect>) {
        let companies = companies(&self.ranks);
        let upkeep = self.gpus.iter_mut().filter_map(|(device, gpu)| {
            let company = companies.get(device).copied().unwrap_or_default();
            Some((device.clone(), gpu.upkeep(now, company)?))
        });
        for (device, order) in upkeep.collect::<Vec<_>>() {
            self.order(&device, order, out);
        }
    }

    fn settle_stretches(&mut self, out: &mut Vec<Effect>) {
        self.stretches.settle(self.places());
        if self.is_linked() {
            let rows = self.stretches.take_rows();
            self.report((!rows.is_empty()).then_some(Report::Stretches(rows)), out);
        }
    }

    /// Where every rank runs that has exactly one GPU.
    fn places(&self) -> BTreeMap<RankId, Place> {
        let running = |held: &Held| matches!(held.life, Life::Running { .. });
        let place = |rank: &RankId, held: &Held| {
            let [device] = &held.devices[..] else { return None };
            let beside = self.live_on(device).filter(|(other, held)| other != rank && running(held));
            Some(Place {
                device: device.clone(),
                gpu: self.gpus.get(device)?.model(),
                sharing: stretch_sharing(held.access)?,
                neighbours: beside.map(|(other, _)| other).collect(),
            })
        };
        let here = self.ranks.iter().filter(|(_, held)| running(held));
        here.filter_map(|(rank, held)| Some((*rank, place(rank, held)?))).collect()
    }
}

/// The live ranks on each device that has some, by how they come to it.
fn companies(ranks: &BTreeMap<RankId, Held>) -> BTreeMap<&DeviceId, Company> {
    let mut companies: BTreeMap<&DeviceId, Company> = BTreeMap::new();
    for held in ranks.values().filter(|held| held.is_live()) {
        for device in &held.devices {
            companies.entry(device).or_default().add(held.access);
        }
    }
    companies
}

const fn stretch_sharing(access: GpuAccess) -> Option<StretchSharing> {
    match access {
        GpuAccess::None => None,
        GpuAccess::Exclusive => Some(StretchSharing::Exclusive),
        GpuAccess::Mps(_) => Some(StretchSharing::Mps),
        GpuAccess::TimeSliced(_) => Some(StretchSharing::TimeSliced),
    }
}
