//! Choices among devices that are shared, each beside the same choice for all other jobs.
//!
//! A job that takes a part of one device goes where a [`DeviceChooser`] says, among the devices with room;
//! jobs of whole devices go where the mapper says. So policies that share differ in nothing but whom they
//! put beside whom. What room is, `free.rs` alone decides.

mod first_fit;
mod horus;
mod jobs;
mod least_loaded;
mod seat;
mod speed;
#[cfg(test)]
mod tests;
mod util_threshold;

use cohabit_types::{Demand, GpuRequest, Placement, Slowdown, Span};

use crate::first_fit::find_shortage;
use crate::interference::InterferenceContext;
use crate::{
    ClassKey, ClusterChange, FreeNodes, JobTraits, MappedPlacer, PendingJob, Placer, Profile, Proposal,
    Shortage, View, ViewChange,
};
pub(crate) use first_fit::FirstFitSharing;
pub(crate) use horus::Horus;
pub(crate) use jobs::Jobs;
use jobs::trained;
pub(crate) use least_loaded::LeastLoaded;
pub(crate) use seat::{FreeDevice, least_loaded};
pub(crate) use speed::slowness;
pub(crate) use util_threshold::UtilThreshold;

/// Chooses one of the devices on which a job has room.
pub(crate) trait DeviceChooser: Send {
    /// Which; there is at least one.
    ///
    /// # Errors
    /// Why the job had better wait.
    fn choose(
        &mut self,
        newcomer: &PendingJob,
        seats: &[FreeDevice<'_>],
        jobs: &mut Jobs,
    ) -> Result<DeviceChoice, Shortage>;

    /// Goes by this knowledge from now on, if it asks a predictor.
    fn set_interference(&mut self, knowledge: &InterferenceContext) {
        let _ = knowledge;
    }
}

/// One of the seats.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeviceChoice {
    /// Which.
    pub(crate) seat: usize,
    /// How many times as long as alone the job is expected to take there; nothing where nobody predicted it.
    pub(crate) slowdown: Option<f64>,
    /// How much later it and its neighbours are done together than if it had a device of its own at once.
    pub(crate) delay: Span,
    /// For the job's story; may be empty.
    pub(crate) why: String,
}

/// A choice for parts of devices, and the mapper for the rest.
#[derive(Debug)]
pub(crate) struct SharedPlacer<C> {
    choice: C,
    whole: MappedPlacer,
    jobs: Jobs,
}

impl<C: DeviceChooser> SharedPlacer<C> {
    pub(crate) fn new(choice: C, whole: MappedPlacer, knowledge: &InterferenceContext) -> SharedPlacer<C> {
        SharedPlacer { choice, whole, jobs: Jobs::new(knowledge.solos.clone()) }
    }
}

impl<C: DeviceChooser> Placer for SharedPlacer<C> {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.whole.learn(view, changes);
        self.jobs.learn(view.now, changes);
    }

    fn uses_interference(&self) -> bool {
        true
    }

    fn set_interference(&mut self, knowledge: &InterferenceContext) {
        self.choice.set_interference(knowledge);
        self.jobs.set_interference(knowledge.solos.clone());
    }

    fn prepare(&mut self, view: &View) -> ClusterChange {
        self.whole.prepare(view)
    }

    fn profile(&mut self, demand: &Demand, traits: &JobTraits) -> Profile {
        self.whole.profile(demand, traits)
    }

    fn needs(&mut self, demand: &Demand, traits: &JobTraits, profile: &Profile) -> ClassKey {
        let (GpuRequest::Part(_), 1) = (demand.gpus, demand.nodes) else {
            return self.whole.needs(demand, traits, profile);
        };
        ClassKey::Beside(*demand, trained(traits))
    }

    fn place(
        &mut self,
        job: &PendingJob,
        profile: &Profile,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        let (GpuRequest::Part(_), 1) = (job.demand.gpus, job.demand.nodes) else {
            return self.whole.place(job, profile, free);
        };
        let seats = FreeDevice::all(&job.demand, free);
        if seats.is_empty() {
            return Err(find_shortage(&job.demand, free.nodes()));
        }
        self.jobs.insert_if_unknown(job);
        let DeviceChoice { seat, slowdown, delay, why } = self.choice.choose(job, &seats, &mut self.jobs)?;
        Ok(Proposal {
            placement: seats[seat].placement(&job.demand),
            slowdown: slowdown.unwrap_or(1.0),
            colocation_slowdown: slowdown.map(Slowdown::from),
            delay,
            why,
        })
    }

    fn slowdown(&mut self, profile: &Profile, placement: &Placement) -> f64 {
        self.whole.slowdown(profile, placement)
    }
}

impl DeviceChoice {
    /// A seat of which nothing more is to say.
    pub(crate) const fn new(seat: usize) -> DeviceChoice {
        DeviceChoice { seat, slowdown: None, delay: Span::ZERO, why: String::new() }
    }
}
