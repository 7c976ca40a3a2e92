//! The placer of all policies that share GPUs: a [`DeviceChooser`] for jobs that ask for part of one device,
//! the mapped placer for all others.
//!
//! Which devices a job fits is decided in `view/` alone.

use std::sync::Arc;

use cohabit_types::{Demand, GpuRequest, JobId, Placement, Slowdown};

use super::{DeviceChoice, DeviceChooser, FreeDevice, Jobs};
use crate::interference::InterferenceContext;
use crate::placement::{JobOutlook, NoOutlooks, Outlooks, WorkloadKey, find_shortage};
use crate::{
    ClassKey, ClusterChange, FreeNodes, JobTraits, MappedPlacer, PendingJob, Placer, Profile, Proposal,
    Shortage, View, ViewChange,
};

/// A chooser for parts of devices, and the mapped placer for the rest.
#[derive(Debug)]
pub(crate) struct SharedPlacer<C> {
    choice: C,
    whole: MappedPlacer,
    jobs: Jobs,
}

impl<C: DeviceChooser> SharedPlacer<C> {
    pub(crate) fn new(choice: C, whole: MappedPlacer, context: &InterferenceContext) -> SharedPlacer<C> {
        SharedPlacer { choice, whole, jobs: Jobs::new(context.solos.clone()) }
    }
}

impl<C: DeviceChooser> Placer for SharedPlacer<C> {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.whole.learn(view, changes);
        self.jobs.learn(view.now, changes);
        self.choice.learn(changes);
    }

    fn set_interference(&mut self, context: &InterferenceContext) {
        self.choice.set_interference(context);
        self.jobs.set_interference(context.solos.clone());
    }

    fn shares_devices(&self) -> bool {
        true
    }

    fn set_backlog(&mut self, jobs_per_device: f64) {
        self.choice.set_backlog(jobs_per_device);
    }

    fn expect(&mut self, job: JobId, outlook: JobOutlook) {
        self.jobs.expect(job, outlook);
    }

    fn prepare(&mut self, view: &View) -> ClusterChange {
        self.whole.prepare(view)
    }

    fn profile(&mut self, demand: &Demand, traits: &JobTraits) -> Profile {
        self.whole.profile(demand, traits)
    }

    fn class_key(&mut self, demand: &Demand, traits: &Arc<JobTraits>, profile: &Profile) -> ClassKey {
        let (GpuRequest::Part(_), 1) = (demand.gpus, demand.nodes) else {
            return self.whole.class_key(demand, traits, profile);
        };
        ClassKey::SharedDevice(*demand, WorkloadKey::of(traits))
    }

    fn place(
        &mut self,
        job: &PendingJob,
        profile: &Profile,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        self.place_among(job, profile, free, &NoOutlooks)
    }

    fn place_among(
        &mut self,
        job: &PendingJob,
        profile: &Profile,
        free: &FreeNodes<'_>,
        outlooks: &dyn Outlooks,
    ) -> Result<Proposal, Shortage> {
        let (GpuRequest::Part(_), 1) = (job.demand.gpus, job.demand.nodes) else {
            return self.whole.place(job, profile, free);
        };
        let devices = FreeDevice::all(&job.demand, free);
        if devices.is_empty() {
            return Err(find_shortage(&job.demand, free.nodes()));
        }
        self.jobs.insert_if_unknown(job);
        let DeviceChoice { device, slowdown, delay, why } =
            self.choice.choose(job, &devices, &mut self.jobs, outlooks)?;
        Ok(Proposal {
            placement: devices[device].placement(&job.demand),
            slowdown: slowdown.unwrap_or(1.0),
            colocation_slowdown: slowdown.map(Slowdown::from),
            delay,
            why,
        })
    }

    fn is_settled(&self) -> bool {
        self.choice.is_settled()
    }

    fn slowdown(&mut self, profile: &Profile, placement: &Placement) -> f64 {
        self.whole.slowdown(profile, placement)
    }
}
