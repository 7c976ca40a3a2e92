//! The trait of everything that chooses devices for one job, and its answer.

use std::sync::Arc;

use cohabit_types::{Demand, JobId, Placement, Slowdown, Span, Time};

use crate::interference::InterferenceContext;
use crate::{Action, ClassKey, FreeNodes, JobTraits, PendingJob, Profile, Shortage, View, ViewChange};

/// Chooses devices.
pub(crate) trait Placer: Send {
    /// Updates the placer's state by these changes; the view contains them already. For placers that depend
    /// on which job is where.
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        let _ = (view, changes);
    }

    /// Uses this knowledge of interference from now on, if the placer uses any.
    fn set_interference(&mut self, context: &InterferenceContext) {
        let _ = context;
    }

    /// Looks at the cluster before a plan; says whether profiles made before are outdated.
    fn prepare(&mut self, view: &View) -> ClusterChange {
        let _ = view;
        ClusterChange::Same
    }

    /// Whether jobs may share devices.
    fn shares_devices(&self) -> bool {
        false
    }

    /// How many jobs wait for each device. For placers that weigh sharing against waiting, as is
    /// [`Placer::expect`].
    fn set_backlog(&mut self, jobs_per_device: f64) {
        let _ = jobs_per_device;
    }

    /// What to expect of a job that is about to be placed.
    fn expect(&mut self, job: JobId, outlook: JobOutlook) {
        let _ = (job, outlook);
    }

    /// What to expect of a job on this cluster.
    fn profile(&mut self, demand: &Demand, traits: &JobTraits) -> Profile {
        Profile::flat(demand, traits)
    }

    /// What decides where a job may go and how good that is: if one job of a class does not fit, none does.
    fn class_key(&mut self, demand: &Demand, traits: &Arc<JobTraits>, profile: &Profile) -> ClassKey {
        let _ = traits;
        ClassKey::of(demand, profile)
    }

    /// Where the job would go.
    ///
    /// # Errors
    /// The resource that is short.
    fn place(
        &mut self,
        job: &PendingJob,
        profile: &Profile,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage>;

    /// The same where the order of jobs has expectations of those that it may share devices with.
    ///
    /// # Errors
    /// As [`Placer::place`].
    fn place_among(
        &mut self,
        job: &PendingJob,
        profile: &Profile,
        free: &FreeNodes<'_>,
        outlooks: &dyn Outlooks,
    ) -> Result<Proposal, Shortage> {
        let _ = outlooks;
        self.place(job, profile, free)
    }

    /// Whether the last answer of [`Placer::place`] would be the same if it were asked again at once: false
    /// where a predictor was asked about a part of what it would have to know, and the next question goes on
    /// with the rest.
    fn is_settled(&self) -> bool {
        true
    }

    /// How much slower an iteration is with this placement than with the best, as a factor of at least 1,
    /// for a job that runs already.
    fn slowdown(&mut self, profile: &Profile, placement: &Placement) -> f64 {
        let _ = (profile, placement);
        1.0
    }
}

/// What the order of jobs expects of each of them. It is asked only of the few that a decision depends on.
pub(crate) trait Outlooks {
    /// What to expect of a job that runs or waits; `None` where nothing is.
    fn of(&self, job: JobId) -> Option<JobOutlook>;

    /// As long as this is the same, and no job was learned of, so are the outlooks; `None` where that is not
    /// known.
    fn version(&self) -> Option<OutlookVersion>;
}

/// A state of what is expected of jobs, and the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutlookVersion {
    pub(crate) number: u64,
    pub(crate) at: Time,
}

/// Nothing is expected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoOutlooks;

impl Outlooks for NoOutlooks {
    fn of(&self, _: JobId) -> Option<JobOutlook> {
        None
    }

    fn version(&self) -> Option<OutlookVersion> {
        None
    }
}

/// What is expected of a job from now on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JobOutlook {
    /// Its rest alone on its device.
    pub(crate) rest: Span,
    /// How long after its submission it would be done if no jobs shared devices.
    pub(crate) completion_without_sharing: Span,
    /// When it was submitted.
    pub(crate) submitted_at: Time,
}

/// Whether the cluster consists of the same nodes as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClusterChange {
    /// It does.
    Same,
    /// It does not: bounds of iteration times may differ.
    Changed,
}

/// Devices for a job, and what is known of the choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The devices.
    pub placement: Placement,
    /// How much slower an iteration is there than at best, as a factor of at least 1.
    pub slowdown: f64,
    /// The part of it that is due to the jobs on the same devices; `None` where it was not predicted.
    pub colocation_slowdown: Option<Slowdown>,
    /// How much later this job and its neighbors are done, in sum, than if it had a device of its own at
    /// once, less what the jobs that wait gain by it; zero where that was not predicted.
    pub delay: Span,
    /// What is special about the choice, for the job's history; may be empty.
    pub why: String,
}

impl Proposal {
    /// A placement as good as any other.
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

    /// The action that starts the job there.
    pub(crate) fn start(self, job: JobId, profile: &Profile) -> Action {
        let Proposal { placement, slowdown, colocation_slowdown, delay: _, why } = self;
        let runtime = profile.expected_at(slowdown);
        Action::Place { job, placement, runtime, slowdown: colocation_slowdown, why }
    }
}

/// Where a job would go with what is free, pending or not. A job that is not pending leaves no trace.
pub(crate) fn dry_run(
    placer: &mut impl Placer,
    view: &View,
    job: &PendingJob,
    free: &FreeNodes<'_>,
    outlooks: &dyn Outlooks,
) -> Result<Proposal, Shortage> {
    let profile = placer.profile(&job.demand, &job.traits);
    let found = placer.place_among(job, &profile, free, outlooks);
    if !view.pending.contains_key(&job.id) {
        placer.learn(view, &[ViewChange::Gone(job.id)]);
    }
    found
}
