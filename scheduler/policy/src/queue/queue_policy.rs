//! A policy made of three parts: an order of jobs, a placer, and a discipline that says what happens behind
//! a job that does not fit.
//!
//! Most policies differ in one of these parts only. A running job is never stopped. Start with
//! [`QueuePolicy::plan`](crate::Policy::plan), which walks the queue and lets a draft try each job.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cohabit_types::{Demand, JobId, ReasonCode, Time};

use super::discipline::Discipline;
use super::draft::{Draft, WalkControl, log2_micros};
use super::expected_ends::ExpectedEnds;
use super::pending_queue::{PendingQueue, PriorityKey, QueuedJob};
use super::pending_reasons::list_pending_reasons;
use crate::interference::InterferenceContext;
use crate::placement::{NoOutlooks, dry_run};
use crate::{
    ClassKey, ClusterChange, FreeNodes, PendingJob, PendingReason, Placer, Plan, Policy, Profile, Proposal,
    RunningJob, Shortage, View, ViewChange,
};

/// An order of jobs.
pub(crate) trait JobOrder: Send {
    /// What jobs of one priority are compared by: the smaller, the earlier. Equal jobs are ordered by the
    /// time of submission.
    fn measure(&self, job: &PendingJob, profile: &Profile) -> u128;
}

/// First come, first served.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Fifo;

impl JobOrder for Fifo {
    fn measure(&self, _: &PendingJob, _: &Profile) -> u128 {
        0
    }
}

/// A policy made of an order, a placer and a discipline.
#[derive(Debug, Clone)]
pub(crate) struct QueuePolicy<R, P> {
    order: R,
    placer: P,
    discipline: Discipline,
    queue: PendingQueue<PriorityKey>,
    profiles: BTreeMap<JobId, Profile>,
    /// Used by backfill alone.
    ends: ExpectedEnds,
}

impl<R: JobOrder, P: Placer> QueuePolicy<R, P> {
    /// A policy of these parts.
    pub(crate) fn new(order: R, placer: P, discipline: Discipline) -> QueuePolicy<R, P> {
        QueuePolicy {
            order,
            placer,
            discipline,
            queue: PendingQueue::default(),
            profiles: BTreeMap::new(),
            ends: ExpectedEnds::default(),
        }
    }

    fn enqueue(&mut self, job: &PendingJob, view: &View) {
        let profile = self.placer.profile(&job.demand, &job.traits);
        let key = (Reverse(job.priority), self.order.measure(job, &profile), job.submitted_at);
        let class_key = self.class_key(&job.demand, &profile);
        self.queue.insert(&QueuedJob::of(job, view), class_key, key);
        self.profiles.insert(job.id, profile);
    }

    /// Backfill separates jobs by runtime, so that it skips as many long jobs as possible at once.
    fn class_key(&self, demand: &Demand, profile: &Profile) -> ClassKey {
        match self.discipline {
            Discipline::Strict | Discipline::WorkConserving => ClassKey::Resources(*demand),
            Discipline::Backfill => ClassKey::ResourcesFor(*demand, log2_micros(profile.runtime)),
        }
    }

    fn forget(&mut self, job: JobId) {
        self.queue.remove(job);
        self.profiles.remove(&job);
        self.ends.remove(job);
    }

    fn expect_end(&mut self, job: &RunningJob, now: Time) {
        if self.discipline == Discipline::Backfill {
            let profile = self.placer.profile(&job.demand, &job.traits);
            let slowdown = self.placer.slowdown(&profile, &job.placement);
            self.ends.insert(job, profile.runtime_at(slowdown), now);
        }
    }
}

impl<R: JobOrder, P: Placer> Policy for QueuePolicy<R, P> {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.placer.learn(view, changes);
        if self.placer.prepare(view) == ClusterChange::Changed {
            view.pending.values().for_each(|job| self.enqueue(job, view));
        }
        for change in changes {
            match change {
                ViewChange::Pending(job) => {
                    self.forget(job.id);
                    self.enqueue(job, view);
                }
                ViewChange::Running(job) => {
                    self.forget(job.id);
                    self.expect_end(job, view.now);
                }
                ViewChange::Gone(job) => self.forget(*job),
                ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => {}
            }
        }
    }

    fn plan(&mut self, view: &View) -> Plan {
        let mut draft = Draft::new(view, self.discipline);
        let mut walk = self.queue.walk_by_turns(view);
        while let Some(entry) = walk.next() {
            let profile = &self.profiles[&entry.job];
            match draft.try_job(entry.job, profile, &mut self.placer, &mut self.ends) {
                WalkControl::Started => walk.note_start(),
                WalkControl::Others => {}
                WalkControl::OtherClasses => walk.close(),
                WalkControl::Nobody => break,
            }
        }
        draft.into_plan()
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        let turns = self.queue.walk_by_turns(view).starting_each().map(|turn| (turn.job, turn.class));
        let mut reasons = list_pending_reasons(turns, |job| self.profiles.get(&job), &mut self.placer, view);
        if self.discipline == Discipline::Backfill {
            self.explain_reservation(view, &mut reasons);
        }
        reasons
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

impl<R: JobOrder, P: Placer> QueuePolicy<R, P> {
    /// Adds the reservation to the reason of the job that has it and of the jobs that it holds back.
    fn explain_reservation(&mut self, view: &View, reasons: &mut [PendingReason]) {
        let mut draft = Draft::new(view, self.discipline);
        let mut holder = None;
        for reason in reasons {
            if let Some(holder) = holder {
                if reason.code == ReasonCode::WaitingForTurn {
                    let conflict = format!("Would still run when the reservation of job {holder} begins");
                    reason.why = format!("{}. {conflict}", reason.why);
                }
                continue;
            }
            if let Some(at) = draft.reserve(&view.pending[&reason.job], &mut self.ends) {
                let wait = at.since(view.now);
                reason.why =
                    format!("{}. Starts in {wait} at the latest: GPUs are reserved for it", reason.why);
                holder = Some(reason.job);
            }
        }
    }
}
