//! Choices among devices that are shared, each beside the same choice for all other jobs.
//!
//! A job that takes a part of one device goes where a [`Choice`] says, among the devices with room; jobs of
//! whole devices go where the mapper says. So policies that share differ in nothing but whom they put beside
//! whom. What room is, `free.rs` alone decides.

mod first_fit;
mod horus;
mod jobs;
mod least_loaded;
mod seat;
mod speed;
#[cfg(test)]
mod tests;
mod util_threshold;

use cohabit_types::{Demand, Gpus, Placement, Slowdown, Span};

use crate::first_fit::shortage_on;
use crate::interference::Knowledge;
use crate::{
    Change, Cluster, FreeNodes, JobTraits, MappedPlace, Needs, PendingJob, Place, Profile, Proposal,
    Shortage, View,
};
pub(crate) use first_fit::FirstFitSharing;
pub(crate) use horus::Horus;
pub(crate) use jobs::Jobs;
use jobs::trained;
pub(crate) use least_loaded::LeastLoaded;
pub(crate) use seat::{Seat, least_loaded};
pub(crate) use speed::slowness;
pub(crate) use util_threshold::UtilThreshold;

/// Chooses one of the devices on which a job has room.
pub(crate) trait Choice: Send {
    /// Which; there is at least one.
    ///
    /// # Errors
    /// Why the job had better wait.
    fn choose(
        &mut self,
        newcomer: &PendingJob,
        seats: &[Seat<'_>],
        jobs: &mut Jobs,
    ) -> Result<Chosen, Shortage>;

    /// Goes by this knowledge from now on, if it asks a predictor.
    fn know(&mut self, knowledge: &Knowledge) {
        let _ = knowledge;
    }
}

/// One of the seats.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen {
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
pub(crate) struct SharedPlace<C> {
    choice: C,
    whole: MappedPlace,
    jobs: Jobs,
}

impl<C: Choice> SharedPlace<C> {
    pub(crate) fn new(choice: C, whole: MappedPlace, knowledge: &Knowledge) -> SharedPlace<C> {
        SharedPlace { choice, whole, jobs: Jobs::new(knowledge.solos.clone()) }
    }
}

impl<C: Choice> Place for SharedPlace<C> {
    fn learn(&mut self, view: &View, changes: &[Change]) {
        self.whole.learn(view, changes);
        self.jobs.learn(view.now, changes);
    }

    fn know(&mut self, knowledge: &Knowledge) {
        self.choice.know(knowledge);
        self.jobs.know(knowledge.solos.clone());
    }

    fn prepare(&mut self, view: &View) -> Cluster {
        self.whole.prepare(view)
    }

    fn profile(&mut self, demand: &Demand, traits: &JobTraits) -> Profile {
        self.whole.profile(demand, traits)
    }

    fn needs(&mut self, demand: &Demand, traits: &JobTraits, profile: &Profile) -> Needs {
        let (Gpus::Part(_), 1) = (demand.gpus, demand.nodes) else {
            return self.whole.needs(demand, traits, profile);
        };
        Needs::Beside(*demand, trained(traits))
    }

    fn place(
        &mut self,
        job: &PendingJob,
        profile: &Profile,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        let (Gpus::Part(_), 1) = (job.demand.gpus, job.demand.nodes) else {
            return self.whole.place(job, profile, free);
        };
        let seats = Seat::all(&job.demand, free);
        if seats.is_empty() {
            return Err(shortage_on(&job.demand, free.nodes()));
        }
        self.jobs.welcome(job);
        let Chosen { seat, slowdown, delay, why } = self.choice.choose(job, &seats, &mut self.jobs)?;
        Ok(Proposal {
            placement: seats[seat].placement(&job.demand),
            slowdown: slowdown.unwrap_or(1.0),
            beside_others: slowdown.map(Slowdown::from),
            delay,
            why,
        })
    }

    fn slowdown(&mut self, profile: &Profile, placement: &Placement) -> f64 {
        self.whole.slowdown(profile, placement)
    }
}

impl Chosen {
    /// A seat of which nothing more is to say.
    pub(crate) const fn new(seat: usize) -> Chosen {
        Chosen { seat, slowdown: None, delay: Span::ZERO, why: String::new() }
    }
}
