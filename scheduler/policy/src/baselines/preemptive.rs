//! Policies that stop a running job when a more urgent one finds no room.
//!
//! Every plan goes through the waiting jobs by urgency. One that has no room now, but will have when those
//! told to stop are gone, keeps that room; else the least urgent running jobs are told to stop, as few as
//! make room. A job that is stopped waits again and later goes on from its checkpoint.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cohabit_types::{Demand, JobId, Placement, Span, Time};

use super::Urgency;
use super::service::{AttainedService, RunningAttempt};
use super::victims::{PreemptionCandidate, UrgencyRank, Victims, rank};
use crate::fitting::fits;
use crate::interference::InterferenceContext;
use crate::pipeline::PriorityKey;
use crate::place::consider;
use crate::prospects::list_pending_reasons;
use crate::without_room::UnplaceableDemands;
use crate::{
    Action, ClassKey, ClusterChange, FreeNodes, PendingJob, PendingQueue, PendingReason, Placer, Plan,
    Policy, Profile, Proposal, QueueEntry, RunPhase, RunningJob, Shortage, View, ViewChange,
};

/// A policy made of an urgency and a choice of place.
#[derive(Debug, Clone)]
pub struct Preemptive<U, P> {
    urgency: U,
    place: P,
    /// No job is stopped before it ran for so long.
    quantum: Span,
    queue: PendingQueue<PriorityKey>,
    waiting: BTreeMap<JobId, TrackedJob>,
    running: BTreeMap<JobId, (TrackedJob, RunningAttempt)>,
}

/// What is remembered of a job.
#[derive(Debug, Clone)]
struct TrackedJob {
    priority: i32,
    submitted_at: Time,
    profile: Profile,
    /// What it had before its present attempt.
    before: AttainedService,
}

/// A plan in the making.
struct PreemptionDraft<'v> {
    view: &'v View,
    /// What is free now and kept for nobody.
    free: FreeNodes<'v>,
    /// The same, when those told to stop are gone; nothing where nobody was.
    soon: Option<FreeNodes<'v>>,
    /// Made when the first job finds no room.
    victims: Option<Victims>,
    without_room: UnplaceableDemands,
    /// The first of those that others may have to make room for.
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
    /// Joins them; no job is stopped before it ran for a quantum.
    pub fn new(urgency: U, place: P, quantum: Span) -> Preemptive<U, P> {
        let (waiting, running) = (BTreeMap::new(), BTreeMap::new());
        Preemptive { urgency, place, quantum, queue: PendingQueue::default(), waiting, running }
    }

    fn waits(&mut self, job: &PendingJob, now: Time) {
        let (known, before) = match (self.running.remove(&job.id), self.waiting.remove(&job.id)) {
            (Some((book, run)), _) => (Some(book.profile), book.before.plus(&run, now)),
            (None, Some(book)) => (Some(book.profile), book.before),
            (None, None) => (None, AttainedService::default()),
        };
        let profile = known.unwrap_or_else(|| self.place.profile(&job.demand, &job.traits));
        let (priority, submitted_at) = (job.priority, job.submitted_at);
        let book = TrackedJob { priority, submitted_at, profile, before };
        self.queue.insert_with_class(job.id, ClassKey::Room(job.demand), self.key(&book, before));
        self.waiting.insert(job.id, book);
    }

    fn runs(&mut self, job: &RunningJob, now: Time) {
        self.queue.remove(job.id);
        let book = match (self.waiting.remove(&job.id), self.running.remove(&job.id)) {
            (Some(book), _) => book,
            (None, Some((book, run))) if run.since == job.started_at => book,
            (None, Some((book, run))) => TrackedJob { before: book.before.plus(&run, now), ..book },
            // Only after a restart of the head: nothing else is told of a job that runs already.
            (None, None) => TrackedJob {
                priority: job.priority,
                submitted_at: job.submitted_at,
                profile: self.place.profile(&job.demand, &job.traits),
                before: AttainedService::default(),
            },
        };
        let slowdown = self.place.slowdown(&book.profile, &job.placement);
        let run = RunningAttempt { since: job.started_at, slowdown, phase: job.phase };
        self.running.insert(job.id, (book, run));
    }

    /// On another cluster other things are to be expected of the jobs that are known.
    fn refresh_profiles(&mut self, view: &View) {
        let pending = view.pending.values().map(|job| (job.id, &job.demand, &job.traits));
        let running = view.running.values().map(|job| (job.id, &job.demand, &job.traits));
        for (id, demand, traits) in pending.chain(running) {
            let profile = self.place.profile(demand, traits);
            let waiting = self.waiting.get_mut(&id);
            if let Some(book) = waiting.or_else(|| self.running.get_mut(&id).map(|(book, _)| book)) {
                book.profile = profile;
            }
        }
        view.running.values().for_each(|job| self.runs(job, view.now));
        view.pending.values().for_each(|job| self.waits(job, view.now));
    }

    fn forget(&mut self, job: JobId) {
        self.queue.remove(job);
        self.waiting.remove(&job);
        self.running.remove(&job);
    }

    fn key(&self, book: &TrackedJob, had: AttainedService) -> PriorityKey {
        (Reverse(book.priority), self.urgency.measure(&book.profile, had), book.submitted_at)
    }

    /// Finds room for the job whose turn it is: now, soon, or by stopping others.
    fn consider(&mut self, draft: &mut PreemptionDraft<'_>, turn: QueueEntry<PriorityKey>) -> Room {
        let job = &draft.view.pending[&turn.job];
        let TrackedJob { profile, before, .. } = &self.waiting[&turn.job];
        if draft.without_room.covers(&job.demand) {
            return Room::None;
        }
        if fits(&job.demand, &draft.free)
            && let Ok(proposal) = self.place.place(job, profile, &draft.free)
        {
            draft.take(&job.demand, &proposal.placement);
            let rest = Profile { runtime: profile.runtime - before.progress, ..profile.clone() };
            draft.plan.actions.push(proposal.start(job.id, &rest));
            return Room::Found;
        }
        let fits_soon = draft.soon.as_ref().is_some_and(|soon| fits(&job.demand, soon));
        if !fits_soon && self.preempt(draft, job, turn) == Room::None {
            draft.without_room.insert(job.demand);
            return Room::None;
        }
        if let Some(soon) = &draft.soon
            && let Ok(kept) = self.place.place(job, profile, soon)
        {
            draft.take(&job.demand, &kept.placement);
        }
        Room::Found
    }

    fn preempt(
        &self,
        draft: &mut PreemptionDraft<'_>,
        job: &PendingJob,
        turn: QueueEntry<PriorityKey>,
    ) -> Room {
        if !draft.free.could_hold_when_empty(&job.demand) {
            return Room::None;
        }
        let rank = rank(turn.key);
        draft.most_urgent = Some(draft.most_urgent.map_or(rank, |known| known.min(rank)));
        let victims =
            draft.victims.get_or_insert_with(|| Victims::new(self.preemption_candidates(draft.view, rank)));
        let soon = draft.soon.as_ref().unwrap_or(&draft.free);
        let Some((stopped, soon)) = victims.make_room((rank, &job.demand), soon, draft.view) else {
            return Room::None;
        };
        draft.soon = Some(soon);
        for id in stopped {
            let claim = match self.running[&id].0.priority < job.priority {
                true => "has a larger priority",
                false => self.urgency.claim(),
            };
            let why = format!("it makes room for job {}, which {claim}", job.id);
            draft.plan.actions.push(Action::Preempt { job: id, why });
        }
        Room::Found
    }

    /// The running jobs that rank behind this.
    fn preemption_candidates(&self, view: &View, ahead: UrgencyRank) -> Vec<PreemptionCandidate> {
        let going_on = self.running.iter().filter(|(_, (_, run))| run.phase == RunPhase::Running);
        let standing = |(job, (book, run)): (&JobId, &(TrackedJob, RunningAttempt))| PreemptionCandidate {
            key: self.key(book, book.before.plus(run, view.now)),
            job: *job,
            protected_until: run.since + self.quantum,
        };
        going_on.map(standing).filter(|it| rank(it.key) > ahead).collect()
    }

    /// When a running job first falls behind this, which waits.
    fn next_behind(&self, waiting: UrgencyRank, now: Time) -> Option<Time> {
        let falls_behind = |(book, run): &(TrackedJob, RunningAttempt)| {
            let service = book.before.plus(run, now);
            let worse_in = self.urgency.time_until_demotion(&book.profile, service)?;
            let then = AttainedService { held: service.held + worse_in, progress: service.progress };
            (rank(self.key(book, then)) > waiting).then_some(now + worse_in)
        };
        self.running.values().filter_map(falls_behind).min()
    }
}

/// Whether there is room for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// Now or soon.
    Found,
    /// Not as long as more urgent jobs run.
    None,
}

impl<U: Urgency, P: Placer> Policy for Preemptive<U, P> {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.place.learn(view, changes);
        if self.place.prepare(view) == ClusterChange::Changed {
            self.refresh_profiles(view);
        }
        for change in changes {
            match change {
                ViewChange::Pending(job) => self.waits(job, view.now),
                ViewChange::Running(job) => self.runs(job, view.now),
                ViewChange::Gone(job) => self.forget(*job),
                ViewChange::Node(_) | ViewChange::NodeGone(_) => {}
            }
        }
    }

    fn plan(&mut self, view: &View) -> Plan {
        let mut draft = PreemptionDraft::new(view);
        let mut all_found = Room::Found;
        let queue = std::mem::take(&mut self.queue);
        let mut walk = queue.walk();
        while let Some(turn) = walk.next() {
            if self.consider(&mut draft, turn) == Room::None {
                all_found = Room::None;
                walk.close();
            }
        }
        self.queue = queue;
        if all_found == Room::None {
            let unsafe_at = draft.victims.and_then(|victims| victims.next_preemptible);
            let behind_at = draft.most_urgent.and_then(|rank| self.next_behind(rank, view.now));
            draft.plan.wake = unsafe_at.into_iter().chain(behind_at).min();
        }
        draft.plan
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        list_pending_reasons(&self.queue, |job| Some(&self.waiting.get(&job)?.profile), &mut self.place, view)
    }

    fn consider(&mut self, view: &View, job: &PendingJob) -> Result<Proposal, Shortage> {
        consider(&mut self.place, view, job)
    }

    fn uses_interference(&self) -> bool {
        self.place.uses_interference()
    }

    fn set_interference(&mut self, knowledge: &InterferenceContext) {
        self.place.set_interference(knowledge);
    }
}
