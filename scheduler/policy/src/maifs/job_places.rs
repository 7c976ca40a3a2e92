//! Where a job of the window could start: on each node its best legal devices (section 7, step 2), and what
//! it and the jobs there would cost each other.

use std::collections::BTreeMap;

use cohabit_types::{DeviceId, GpuRequest, JobId, NodeId, Slowdown};

use crate::interference::{InterferenceContext, InternedSet, PredictionCache};
use crate::sharing::{FreeDevice, Jobs, compute_slowness};
use crate::{DeviceView, NodeView, PendingJob};

/// A set of jobs fits a GPU with at least this probability.
const LIKELY_TO_FIT: f64 = 0.5;

/// The devices that a job would get on a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct JobPlace {
    pub(super) devices: Vec<DeviceId>,
    /// Its predicted slowdown there, at least 1.
    pub(super) slowdown: f64,
    /// By how much the slowdowns of the jobs there grow, in sum.
    pub(super) added: f64,
    /// How much slower the make of these devices is than the fastest.
    pub(super) slowness: f64,
}

/// The places of the jobs of the window on all nodes, computed once until a node changes.
#[derive(Debug)]
pub(super) struct JobPlaces {
    cache: PredictionCache,
    /// The largest slowdown for jobs that state none.
    max_slowdown: Option<Slowdown>,
    known: BTreeMap<(JobId, NodeId), Option<JobPlace>>,
}

impl JobPlaces {
    pub(super) fn new(context: &InterferenceContext) -> JobPlaces {
        JobPlaces {
            cache: PredictionCache::new(context.interference.clone()),
            max_slowdown: context.max_slowdown,
            known: BTreeMap::new(),
        }
    }

    /// Forgets all places: another plan begins.
    pub(super) fn clear(&mut self) {
        self.known.clear();
    }

    /// A job has started on a node.
    pub(super) fn forget(&mut self, job: JobId, node: NodeId) {
        self.known.retain(|(known, place), _| *known != job && *place != node);
    }

    /// The place of a job on a node; `None` where it may not start.
    pub(super) fn find(&mut self, job: &PendingJob, node: &NodeView, jobs: &mut Jobs) -> Option<JobPlace> {
        if let Some(known) = self.known.get(&(job.id, node.id)) {
            return known.clone();
        }
        let place = self.compute(job, node, jobs);
        self.known.insert((job.id, node.id), place.clone());
        place
    }

    fn compute(&mut self, job: &PendingJob, node: &NodeView, jobs: &mut Jobs) -> Option<JobPlace> {
        let demand = &job.demand;
        if !node.has_host_room(demand) {
            return None;
        }
        let needed = demand.devices();
        let alone = |devices| JobPlace { devices, slowdown: 1.0, added: 0.0, slowness: 1.0 };
        let GpuRequest::Part(_) = demand.gpus else {
            let devices = node.first_devices(demand, needed);
            return (devices.len() == needed as usize).then(|| alone(devices));
        };
        jobs.insert_if_unknown(job);
        let roomy: Vec<&DeviceView> = node.roomy(demand).collect();
        if let Some(idle) = roomy.iter().find(|device| device.jobs.is_empty()) {
            let slowness = slowness(job.id, node, idle, jobs);
            return Some(JobPlace { slowness, ..alone(vec![idle.id.clone()]) });
        }
        let places = roomy.into_iter().filter_map(|device| self.beside(job.id, node, device, jobs));
        places.min_by(|one, other| one.added.total_cmp(&other.added))
    }

    /// What sharing a device would cost; `None` if it would slow somebody too much.
    fn beside(
        &mut self,
        job: JobId,
        node: &NodeView,
        device: &DeviceView,
        jobs: &mut Jobs,
    ) -> Option<JobPlace> {
        let (gpu, residents) = (jobs.kind_of(device), jobs.on(device));
        let set = |jobs: &mut Jobs, members: &[JobId]| InternedSet {
            gpu: gpu.clone(),
            sharing: device.sharing.mode,
            members: members.iter().map(|job| jobs.member(*job, &gpu)).collect(),
        };
        let together: Vec<JobId> = [job].into_iter().chain(residents.iter().copied()).collect();
        let sets = [set(jobs, &together), set(jobs, &residents)];
        let answers = self.cache.predict(&sets);
        let allowed =
            |id: JobId| jobs.max_slowdown(id).or(self.max_slowdown).map_or(f64::MAX, Slowdown::as_f64);
        let is_fine = answers[0]
            .iter()
            .zip(&together)
            .all(|(it, id)| it.slowdown <= allowed(*id) && it.fits >= LIKELY_TO_FIT);
        let own = answers[0].first()?.slowdown;
        let sum = |answers: &[crate::interference::ColocationEstimate]| -> f64 {
            answers.iter().map(|it| it.slowdown).sum()
        };
        let added = sum(&answers[0][1..]) - sum(&answers[1]);
        let slowness = slowness(job, node, device, jobs);
        let place = JobPlace { devices: vec![device.id.clone()], slowdown: own, added, slowness };
        is_fine.then_some(place)
    }

    /// The mean predicted slowdown of the jobs on a node, at least 1.
    pub(super) fn mean_slowdown(&mut self, node: &NodeView, jobs: &mut Jobs) -> f64 {
        let shared: Vec<&DeviceView> = node.devices.iter().filter(|device| device.jobs.len() > 1).collect();
        let sets: Vec<InternedSet> = shared
            .iter()
            .map(|device| {
                let gpu = jobs.kind_of(device);
                let members = jobs.on(device).into_iter().map(|job| jobs.member(job, &gpu)).collect();
                InternedSet { gpu, sharing: device.sharing.mode, members }
            })
            .collect();
        let all: usize = node.devices.iter().map(|device| device.jobs.len()).sum();
        let extra: f64 = self.cache.predict(&sets).iter().flatten().map(|it| it.slowdown - 1.0).sum();
        1.0 + extra / all.max(1) as f64
    }
}

fn slowness(job: JobId, node: &NodeView, device: &DeviceView, jobs: &mut Jobs) -> f64 {
    compute_slowness(job, &[FreeDevice { node, view: device }], jobs).first().copied().unwrap_or(1.0)
}
