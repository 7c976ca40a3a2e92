//! The choice of devices for one job.

use cohabit_proto::{Demand, JobId, Placement};

use crate::{Action, Change, FreeNodes, JobTraits, PendingJob, Profile, Shortage, View};

/// Chooses devices.
pub trait Place: Send {
    /// Takes note of changes, which are in the view already: for a choice that depends on who is where.
    fn learn(&mut self, view: &View, changes: &[Change]) {
        let _ = (view, changes);
    }

    /// Takes note of the cluster before a plan; answers whether profiles made before no longer hold.
    fn prepare(&mut self, view: &View) -> Cluster {
        let _ = view;
        Cluster::Same
    }

    /// What is to be expected of a job on this cluster.
    fn profile(&mut self, demand: &Demand, traits: &JobTraits) -> Profile {
        Profile::flat(demand, traits)
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
pub enum Cluster {
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
    /// For the job's story: what is special about the place; may be empty.
    pub why: String,
}

impl Proposal {
    /// A place as good as any other.
    #[must_use]
    pub const fn new(placement: Placement) -> Proposal {
        Proposal { placement, slowdown: 1.0, why: String::new() }
    }

    /// The start of a job there.
    #[must_use]
    pub(crate) fn start(self, job: JobId, profile: &Profile) -> Action {
        let Proposal { placement, slowdown, why } = self;
        Action::Place { job, placement, runtime: profile.expected_at(slowdown), why }
    }
}
