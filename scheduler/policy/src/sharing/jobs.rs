//! What a choice among shared devices has to know about jobs: those that wait, and those that run on the
//! devices.
//!
//! It is built from the changes that a policy gets. Nothing is chosen here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_types::{Demand, GpuRequest, JobId, Slowdown, Span, Time};

use crate::interference::{GpuKind, InternedMember, SoloMetricsTable, build_member};
use crate::placement::JobOutlook;
use crate::queue::expected_ends::estimate_end;
use crate::{DeviceView, JobTraits, PendingJob, Profile, RunningJob, ViewChange};

/// All jobs that use devices.
#[derive(Debug)]
pub(crate) struct Jobs {
    solos: Arc<SoloMetricsTable>,
    now: Time,
    known: BTreeMap<JobId, KnownJob>,
    /// The kinds of GPU by the names that devices state.
    kinds: BTreeMap<String, GpuKind>,
    /// One copy of each member, so that most equal members are one and the same and compare fast.
    members: BTreeSet<Arc<InternedMember>>,
    /// Unused members are dropped when there are so many.
    sweep_at: usize,
    /// Jobs that wait for whole devices.
    awaiting_whole: BTreeSet<JobId>,
}

/// The number of members at which unused ones are dropped for the first time.
const FIRST_SWEEP: usize = 4_096;

/// What is known of one job.
#[derive(Debug)]
struct KnownJob {
    demand: Demand,
    traits: Arc<JobTraits>,
    /// Set once the job runs; most jobs wait, and need no room for it.
    running: Option<Box<RunningJob>>,
    /// What the order of jobs expects of it, where it says so.
    outlook: Option<JobOutlook>,
    /// Its member for each kind of GPU for which it was asked.
    members: BTreeMap<GpuKind, Arc<InternedMember>>,
}

impl Jobs {
    pub(crate) fn new(solos: Arc<SoloMetricsTable>) -> Jobs {
        Jobs {
            solos,
            now: Time::EPOCH,
            known: BTreeMap::new(),
            kinds: BTreeMap::new(),
            members: BTreeSet::new(),
            sweep_at: FIRST_SWEEP,
            awaiting_whole: BTreeSet::new(),
        }
    }

    /// Uses these measurements of jobs alone from now on.
    pub(crate) fn set_interference(&mut self, solos: Arc<SoloMetricsTable>) {
        self.solos = solos;
        self.known.values_mut().for_each(|job| job.members.clear());
    }

    /// Updates the jobs by these changes.
    pub(crate) fn learn(&mut self, now: Time, changes: &[ViewChange]) {
        self.now = now;
        for change in changes {
            match change {
                ViewChange::Pending(job) => {
                    self.note(job.id, &job.demand, &job.traits, None);
                    if let GpuRequest::Whole(1..) = job.demand.gpus {
                        self.awaiting_whole.insert(job.id);
                    }
                }
                ViewChange::Running(job) => {
                    self.note(job.id, &job.demand, &job.traits, Some(Box::new(job.clone())));
                    self.awaiting_whole.remove(&job.id);
                }
                ViewChange::Gone(job) => {
                    self.known.remove(job);
                    self.awaiting_whole.remove(job);
                }
                ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => {}
            }
        }
    }

    fn note(
        &mut self,
        job: JobId,
        demand: &Demand,
        traits: &Arc<JobTraits>,
        running: Option<Box<RunningJob>>,
    ) {
        let (GpuRequest::Part(_) | GpuRequest::Whole(1..)) = demand.gpus else { return };
        let new = || KnownJob {
            demand: *demand,
            traits: traits.clone(),
            running: None,
            outlook: None,
            members: BTreeMap::new(),
        };
        self.known.entry(job).or_insert_with(new).running = running;
    }

    /// Adds a job that is about to be placed, unless it is known.
    pub(crate) fn insert_if_unknown(&mut self, job: &PendingJob) {
        if !self.known.contains_key(&job.id) {
            self.note(job.id, &job.demand, &job.traits, None);
        }
    }

    /// Sets what is expected of a known job.
    pub(crate) fn expect(&mut self, job: JobId, outlook: JobOutlook) {
        if let Some(known) = self.known.get_mut(&job) {
            known.outlook = Some(outlook);
        }
    }

    /// What the order of jobs expects of a known job.
    pub(crate) fn outlook(&self, job: JobId) -> Option<JobOutlook> {
        self.known.get(&job)?.outlook
    }

    /// The current time.
    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// The known jobs on a device.
    pub(crate) fn on(&self, device: &DeviceView) -> Vec<JobId> {
        device.jobs.iter().copied().filter(|job| self.known.contains_key(job)).collect()
    }

    /// The kind of a device.
    pub(crate) fn kind_of(&mut self, device: &DeviceView) -> GpuKind {
        if let Some(kind) = self.kinds.get(&device.model) {
            return kind.clone();
        }
        let kind = GpuKind::named(&device.model);
        self.kinds.insert(device.model.clone(), kind.clone());
        kind
    }

    /// What a known job is on a kind of GPU, as a member of a co-location set.
    ///
    /// # Panics
    /// If the job is not known.
    pub(crate) fn member(&mut self, job: JobId, gpu: &GpuKind) -> Arc<InternedMember> {
        let job_entry = self.known.get_mut(&job).expect("the job is known");
        if let Some(member) = job_entry.members.get(gpu) {
            return member.clone();
        }
        let made = Arc::new(InternedMember::new(build_member(
            &job_entry.demand,
            &job_entry.traits,
            gpu,
            &self.solos,
        )));
        let member = self.members.get(&made).cloned().unwrap_or(made);
        job_entry.members.insert(gpu.clone(), member.clone());
        self.members.insert(member.clone());
        if self.members.len() >= self.sweep_at {
            self.drop_unused_members();
        }
        member
    }

    /// Drops the members that no known job uses. The next time comes when there are twice as many as are
    /// left, so that on average this costs little for each new member.
    fn drop_unused_members(&mut self) {
        let used = self.known.values().flat_map(|job| job.members.values());
        self.members = used.cloned().collect();
        self.sweep_at = FIRST_SWEEP.max(2 * self.members.len());
    }

    /// The largest slowdown by neighbors that a known job allows, where it states one.
    pub(crate) fn max_slowdown(&self, job: JobId) -> Option<Slowdown> {
        self.known[&job].demand.max_slowdown
    }

    /// Whether any job waits for whole devices.
    pub(crate) fn has_waiting_whole_device_jobs(&self) -> bool {
        !self.awaiting_whole.is_empty()
    }

    /// What a known job asked for.
    pub(crate) fn demand(&self, job: JobId) -> &Demand {
        &self.known[&job].demand
    }

    /// What is expected of a known job alone.
    pub(crate) fn profile(&self, job: JobId) -> Profile {
        let job_entry = &self.known[&job];
        let profile = Profile::flat(&job_entry.demand, &job_entry.traits);
        match job_entry.outlook.filter(|_| job_entry.running.is_none()) {
            Some(outlook) => Profile { runtime: outlook.rest, ..profile },
            None => profile,
        }
    }

    /// How long a known job still runs at its present speed; `None` if it does not run yet.
    pub(crate) fn ends_in(&self, job: JobId) -> Option<Span> {
        let running = self.known[&job].running.as_ref()?;
        Some(estimate_end(running, self.profile(job).runtime, self.now).since(self.now))
    }

    /// How busy a device would be with the newcomer: the sum of what each job on it uses alone, 1 being one
    /// device.
    pub(crate) fn sum_utilization(&mut self, newcomer: JobId, device: &DeviceView) -> f64 {
        let gpu = self.kind_of(device);
        let together = self.on(device).into_iter().chain([newcomer]);
        together.map(|job| self.member(job, &gpu).member.busy()).sum()
    }
}
