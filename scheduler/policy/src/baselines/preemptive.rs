//! Policies that stop a running job when a more urgent one does not fit.
//!
//! Every plan goes through the pending jobs by urgency. A job that does not fit now, but will once the jobs
//! that were told to stop have ended, keeps those resources; otherwise the least urgent running jobs are
//! told to stop, as few as necessary. A stopped job waits again and later continues from its checkpoint. Only
//! jobs that agreed to be stopped are.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cohabit_fair_share::{Displacement, Turns};
use cohabit_types::{Demand, JobId, Placement, Span, Time};

use super::Urgency;
use super::attained_service::{AttainedService, RunningAttempt};
use super::victims::{PreemptionCandidate, UrgencyRank, Victims, rank};
use crate::interference::InterferenceContext;
use crate::placement::{NoOutlooks, dry_run};
use crate::queue::PriorityKey;
use crate::queue::QueuedJob;
use crate::queue::fit_tracker::fits;
use crate::queue::pending_reasons::list_pending_reasons;
use crate::queue::unplaceable::UnplaceableDemands;
use crate::{
    Action, ClassKey, ClusterChange, FreeNodes, PendingJob, PendingQueue, PendingReason, Placer, Plan,
    Policy, Profile, Proposal, QueueEntry, RunPhase, RunningJob, Shortage, View, ViewChange,
};

/// No job is more urgent.
const MOST_URGENT: UrgencyRank = (Reverse(i32::MAX), 0);

/// A policy made of an urgency and a placer.
#[derive(Debug, Clone)]
pub(crate) struct Preemptive<U, P> {
    urgency: U,
    placer: P,
    /// No job is stopped before it has run this long.
    quantum: Span,
    queue: PendingQueue<PriorityKey>,
    waiting: BTreeMap<JobId, TrackedJob>,
    running: BTreeMap<JobId, (TrackedJob, RunningAttempt)>,
}

/// What is known of a job.
#[derive(Debug, Clone)]
struct TrackedJob {
    priority: i32,
    submitted_at: Time,
    profile: Profile,
    /// The service that it had attained before its present attempt.
    before: AttainedService,
}

/// A plan while it is made.
struct PreemptionDraft<'v> {
    view: &'v View,
    /// What is free now and kept for no job.
    free: FreeNodes<'v>,
    /// What is free once the jobs that were told to stop have ended; `None` if none was.
    soon: Option<FreeNodes<'v>>,
    /// Made when the first job does not fit.
    victims: Option<Victims>,
    without_room: UnplaceableDemands,
    /// The most urgent job that does not fit.
    most_urgent: Option<UrgencyRank>,
    plan: Plan,
}

impl<'v> PreemptionDraft<'v> {
    fn new(view: &'v View) -> PreemptionDraft<'v> {
        let free = FreeNodes::new(&view.nodes);
        let mut soon = None;
        for job in view.running.values().filter(|job| job.phase == RunPhase::Stopping) {
            soon.get_or_insert_with(|| free.clone()).give_back(&job.demand, &job.placement);
        }
        let without_room = UnplaceableDemands::default();
        PreemptionDraft {
            view,
            free,
            soon,
            victims: None,
            without_room,
            most_urgent: None,
            plan: Plan::default(),
        }
    }

    fn take(&mut self, demand: &Demand, placement: &Placement) {
        self.free.take(demand, placement);
        self.soon.iter_mut().for_each(|soon| soon.take(demand, placement));
    }
}

impl<U: Urgency, P: Placer> Preemptive<U, P> {
    /// A policy of these parts; no job is stopped before it ran for a quantum.
    pub(crate) fn new(urgency: U, placer: P, quantum: Span) -> Preemptive<U, P> {
        let (waiting, running) = (BTreeMap::new(), BTreeMap::new());
        Preemptive { urgency, placer, quantum, queue: PendingQueue::default(), waiting, running }
    }

    fn waits(&mut self, job: &PendingJob, view: &View) {
        let now = view.now;
        let (known, before) = match (self.running.remove(&job.id), self.waiting.remove(&job.id)) {
            (Some((tracked, run)), _) => (Some(tracked.profile), tracked.before.plus(&run, now)),
            (None, Some(tracked)) => (Some(tracked.profile), tracked.before),
            (None, None) => (None, AttainedService::default()),
        };
        let profile = known.unwrap_or_else(|| self.placer.profile(&job.demand, &job.traits));
        let (priority, submitted_at) = (job.priority, job.submitted_at);
        let tracked = TrackedJob { priority, submitted_at, profile, before };
        let key = self.key(&tracked, before);
        self.queue.insert(&QueuedJob::of(job, view), ClassKey::Resources(job.demand), key);
        self.waiting.insert(job.id, tracked);
    }

    fn runs(&mut self, job: &RunningJob, now: Time) {
        self.queue.remove(job.id);
        let tracked = match (self.waiting.remove(&job.id), self.running.remove(&job.id)) {
            (Some(tracked), _) => tracked,
            (None, Some((tracked, run))) if run.since == job.started_at => tracked,
            (None, Some((tracked, run))) => TrackedJob { before: tracked.before.plus(&run, now), ..tracked },
            // Only after a restart of the head: otherwise a running job was pending before.
            (None, None) => TrackedJob {
                priority: job.priority,
                submitted_at: job.submitted_at,
                profile: self.placer.profile(&job.demand, &job.traits),
                before: AttainedService::default(),
            },
        };
        let slowdown = self.placer.slowdown(&tracked.profile, &job.placement);
        let run = RunningAttempt { since: job.started_at, slowdown, phase: job.phase };
        self.running.insert(job.id, (tracked, run));
    }

    /// On a changed cluster, the profiles of known jobs may change.
    fn refresh_profiles(&mut self, view: &View) {
        let pending = view.pending.values().map(|job| (job.id, &job.demand, &job.traits));
        let running = view.running.values().map(|job| (job.id, &job.demand, &job.traits));
        for (id, demand, traits) in pending.chain(running) {
            let profile = self.placer.profile(demand, traits);
            let waiting = self.waiting.get_mut(&id);
            if let Some(tracked) = waiting.or_else(|| self.running.get_mut(&id).map(|(tracked, _)| tracked)) {
                tracked.profile = profile;
            }
        }
        view.running.values().for_each(|job| self.runs(job, view.now));
        view.pending.values().for_each(|job| self.waits(job, view));
    }

    fn forget(&mut self, job: JobId) {
        self.queue.remove(job);
        self.waiting.remove(&job);
        self.running.remove(&job);
    }

    fn key(&self, tracked: &TrackedJob, had: AttainedService) -> PriorityKey {
        (Reverse(tracked.priority), self.urgency.measure(&tracked.profile, had), tracked.submitted_at)
    }

    /// Finds resources for the job whose turn it is: now, soon, or by stopping other jobs.
    fn try_job(
        &mut self,
        draft: &mut PreemptionDraft<'_>,
        entry: QueueEntry<PriorityKey>,
        turns: Option<&Turns>,
    ) -> RoomSearch {
        let job = &draft.view.pending[&entry.job];
        let TrackedJob { profile, before, .. } = &self.waiting[&entry.job];
        if draft.without_room.covers(&job.demand) {
            return RoomSearch::None;
        }
        if fits(&job.demand, &draft.free)
            && let Ok(proposal) = self.placer.place(job, profile, &draft.free)
        {
            draft.take(&job.demand, &proposal.placement);
            let rest = Profile { runtime: profile.runtime - before.progress, ..profile.clone() };
            draft.plan.actions.push(proposal.start(job.id, &rest));
            return RoomSearch::Found;
        }
        let fits_soon = draft.soon.as_ref().is_some_and(|soon| fits(&job.demand, soon));
        if !fits_soon && self.preempt(draft, job, entry, turns) == RoomSearch::None {
            draft.without_room.insert(job.demand);
            return RoomSearch::None;
        }
        if let Some(soon) = &draft.soon
            && let Ok(kept) = self.placer.place(job, profile, soon)
        {
            draft.take(&job.demand, &kept.placement);
        }
        RoomSearch::Found
    }

    fn preempt(
        &self,
        draft: &mut PreemptionDraft<'_>,
        job: &PendingJob,
        entry: QueueEntry<PriorityKey>,
        turns: Option<&Turns>,
    ) -> RoomSearch {
        if !draft.free.could_hold_when_empty(&job.demand) {
            return RoomSearch::None;
        }
        let rank = rank(entry.key);
        draft.most_urgent = Some(draft.most_urgent.map_or(rank, |known| known.min(rank)));
        // Where users take turns, a later job may be more urgent.
        let least = if turns.is_some() { MOST_URGENT } else { rank };
        let victims =
            draft.victims.get_or_insert_with(|| Victims::new(self.preemption_candidates(draft.view, least)));
        let soon = draft.soon.as_ref().unwrap_or(&draft.free);
        let view = draft.view;
        let displacement = turns.map(|turns| Displacement::new(turns, entry.line, &job.demand));
        let Some((stopped, soon)) = victims.make_room((rank, &job.demand), soon, view, displacement) else {
            return RoomSearch::None;
        };
        draft.soon = Some(soon);
        for id in stopped {
            let claim = match self.running[&id].0.priority < job.priority {
                true => "has a higher priority",
                false => self.urgency.claim(),
            };
            let why = format!("makes room for job {}, which {claim}", job.id);
            draft.plan.actions.push(Action::Preempt { job: id, why });
        }
        RoomSearch::Found
    }

    /// The running jobs that are less urgent than this one and may be stopped for it.
    fn preemption_candidates(&self, view: &View, ahead: UrgencyRank) -> Vec<PreemptionCandidate> {
        let agreed = |job| view.running.get(job).is_some_and(|job: &RunningJob| job.traits.preemptible);
        let going_on =
            self.running.iter().filter(|(job, (_, run))| run.phase == RunPhase::Running && agreed(job));
        let candidate =
            |(job, (tracked, run)): (&JobId, &(TrackedJob, RunningAttempt))| PreemptionCandidate {
                key: self.key(tracked, tracked.before.plus(run, view.now)),
                job: *job,
                protected_until: run.since + self.quantum,
            };
        going_on.map(candidate).filter(|it| rank(it.key) > ahead).collect()
    }

    /// When the first running job becomes less urgent than this pending one.
    fn next_behind(&self, waiting: UrgencyRank, now: Time) -> Option<Time> {
        let falls_behind = |(tracked, run): &(TrackedJob, RunningAttempt)| {
            let service = tracked.before.plus(run, now);
            let worse_in = self.urgency.time_until_demotion(&tracked.profile, service)?;
            let then = AttainedService { held: service.held + worse_in, progress: service.progress };
            (rank(self.key(tracked, then)) > waiting).then_some(now + worse_in)
        };
        self.running.values().filter_map(falls_behind).min()
    }
}

/// Whether resources for a job were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoomSearch {
    /// Now or soon.
    Found,
    /// Not as long as more urgent jobs run.
    None,
}

impl<U: Urgency, P: Placer> Policy for Preemptive<U, P> {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.placer.learn(view, changes);
        if self.placer.prepare(view) == ClusterChange::Changed {
            self.refresh_profiles(view);
        }
        for change in changes {
            match change {
                ViewChange::Pending(job) => self.waits(job, view),
                ViewChange::Running(job) => self.runs(job, view.now),
                ViewChange::Gone(job) => self.forget(*job),
                ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => {}
            }
        }
    }

    fn plan(&mut self, view: &View) -> Plan {
        let mut draft = PreemptionDraft::new(view);
        let mut all_found = RoomSearch::Found;
        let queue = std::mem::take(&mut self.queue);
        let mut walk = queue.walk(queue.turns(view));
        while let Some(entry) = walk.next() {
            let before = draft.plan.actions.len();
            match self.try_job(&mut draft, entry, walk.turns()) {
                RoomSearch::Found => {
                    walk.note_start();
                    walk.note_stops(&draft.plan.actions[before..], view);
                }
                RoomSearch::None => {
                    all_found = RoomSearch::None;
                    walk.close();
                }
            }
        }
        self.queue = queue;
        if all_found == RoomSearch::None {
            let unsafe_at = draft.victims.and_then(|victims| victims.next_preemptible);
            let behind_at = draft.most_urgent.and_then(|rank| self.next_behind(rank, view.now));
            draft.plan.wake = unsafe_at.into_iter().chain(behind_at).min();
        }
        draft.plan
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        list_pending_reasons(
            self.queue.walk(self.queue.turns(view)).starting_each().map(|turn| (turn.job, turn.class)),
            |job| Some(&self.waiting.get(&job)?.profile),
            &mut self.placer,
            view,
        )
    }

    fn dry_run_on(
        &mut self,
        view: &View,
        job: &PendingJob,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        dry_run(&mut self.placer, view, job, free, &NoOutlooks)
    }

    fn set_interference(&mut self, context: &InterferenceContext) {
        self.placer.set_interference(context);
    }
}
