//! The choice of devices for one job.

use cohabit_types::{Demand, JobId, Placement, Slowdown, Span};

use crate::interference::InterferenceContext;
use crate::{Action, ClassKey, FreeNodes, JobTraits, PendingJob, Profile, Shortage, View, ViewChange};

/// Chooses devices.
pub trait Placer: Send {
    /// Takes note of changes, which are in the view already: for a choice that depends on who is where.
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        let _ = (view, changes);
    }

    /// Whether choices depend on what [`set_interference`](Self::set_interference) sets.
    fn uses_interference(&self) -> bool {
        false
    }

    /// Goes by this knowledge of interference from now on, if it goes by any.
    fn set_interference(&mut self, knowledge: &InterferenceContext) {
        let _ = knowledge;
    }

    /// Takes note of the cluster before a plan; answers whether profiles made before no longer hold.
    fn prepare(&mut self, view: &View) -> ClusterChange {
        let _ = view;
        ClusterChange::Same
    }

    /// What is to be expected of a job on this cluster.
    fn profile(&mut self, demand: &Demand, traits: &JobTraits) -> Profile {
        Profile::flat(demand, traits)
    }

    /// What decides where a job may go and how good that is: where one of those that need the same has no
    /// place, none of them has any.
    fn needs(&mut self, demand: &Demand, traits: &JobTraits, profile: &Profile) -> ClassKey {
        let _ = traits;
        ClassKey::of(demand, profile)
    }

    /// Where the job would go.
    ///
    /// # Errors
    /// The shortage that keeps the job waiting.
    fn place(
        &mut self,
        job: &PendingJob,
        profile: &Profile,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage>;

    /// How much longer an iteration takes at this place than at the best, at least 1: for a job that runs
    /// there already.
    fn slowdown(&mut self, profile: &Profile, placement: &Placement) -> f64 {
        let _ = (profile, placement);
        1.0
    }
}

/// Whether the cluster is made of the same nodes as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterChange {
    /// It is.
    Same,
    /// It is not: bounds of iteration times may differ.
    Changed,
}

/// A place for a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// Where.
    pub placement: Placement,
    /// How much longer an iteration takes there than at the best place, at least 1.
    pub slowdown: f64,
    /// How much of that is for the neighbours' sake; nothing where nobody looked at that.
    pub colocation_slowdown: Option<Slowdown>,
    /// How much later this job and those beside it are done together than if it had a device of its own at
    /// once; nothing where nobody looked at that.
    pub delay: Span,
    /// For the job's story: what is special about the place; may be empty.
    pub why: String,
}

impl Proposal {
    /// A place as good as any other.
    #[must_use]
    pub const fn new(placement: Placement) -> Proposal {
        Proposal {
            placement,
            slowdown: 1.0,
            colocation_slowdown: None,
            delay: Span::ZERO,
            why: String::new(),
        }
    }

    /// The start of a job there.
    #[must_use]
    pub(crate) fn start(self, job: JobId, profile: &Profile) -> Action {
        let Proposal { placement, slowdown, colocation_slowdown, delay: _, why } = self;
        let runtime = profile.expected_at(slowdown);
        Action::Place { job, placement, runtime, slowdown: colocation_slowdown, why }
    }
}

/// Where a job would go with what is free now, whether it waits or is only thought of. Nothing is kept of it.
pub(crate) fn consider(place: &mut impl Placer, view: &View, job: &PendingJob) -> Result<Proposal, Shortage> {
    let profile = place.profile(&job.demand, &job.traits);
    let found = place.place(job, &profile, &FreeNodes::new(&view.nodes));
    if !view.pending.contains_key(&job.id) {
        place.learn(view, &[ViewChange::Gone(job.id)]);
    }
    found
}
