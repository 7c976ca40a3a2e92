//! Most policies change only the order of jobs, or only the choice of their place: a pipeline joins the two,
//! and a discipline says what becomes of those behind a job that has no room.
//!
//! It never stops a job that runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cohabit_types::{Demand, JobId, ReasonCode, Time};

use crate::draft::{Draft, WalkControl, log2_micros};
use crate::ends::ExpectedEnds;
use crate::interference::InterferenceContext;
use crate::place::consider;
use crate::prospects::list_pending_reasons;
use crate::{
    ClassKey, ClusterChange, PendingJob, PendingQueue, PendingReason, Placer, Plan, Policy, Profile,
    Proposal, RunningJob, Shortage, View, ViewChange,
};

/// An order of precedence.
pub trait JobOrder: Send {
    /// What jobs are compared by, within one priority: the smaller, the earlier. Equal ones go by the time of
    /// submission.
    fn measure(&self, job: &PendingJob, profile: &Profile) -> u128;
}

/// What becomes of the jobs behind one that has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discipline {
    /// They wait, so that no large job starves. Only a job that the nodes now present could not even hold
    /// when empty is passed over.
    Strict,
    /// They may pass.
    WorkConserving,
    /// They may pass as long as the first one without room does not start later for it, as far as runtimes
    /// are what is expected: EASY backfill.
    Backfill,
}

/// First come, first served.
#[derive(Debug, Default, Clone, Copy)]
pub struct Fifo;

impl JobOrder for Fifo {
    fn measure(&self, _: &PendingJob, _: &Profile) -> u128 {
        0
    }
}

/// Larger priorities first, then the smaller measure, then the earlier submission.
pub(crate) type PriorityKey = (Reverse<i32>, u128, Time);

/// A policy made of an order, a choice of place and a discipline.
#[derive(Debug, Clone)]
pub struct QueuePolicy<R, P> {
    rank: R,
    place: P,
    discipline: Discipline,
    queue: PendingQueue<PriorityKey>,
    profiles: BTreeMap<JobId, Profile>,
    /// Kept for backfill alone.
    ends: ExpectedEnds,
}

impl<R: JobOrder, P: Placer> QueuePolicy<R, P> {
    /// Joins them.
    pub fn new(rank: R, place: P, discipline: Discipline) -> QueuePolicy<R, P> {
        QueuePolicy {
            rank,
            place,
            discipline,
            queue: PendingQueue::default(),
            profiles: BTreeMap::new(),
            ends: ExpectedEnds::default(),
        }
    }

    fn enqueue(&mut self, job: &PendingJob) {
        let profile = self.place.profile(&job.demand, &job.traits);
        let key = (Reverse(job.priority), self.rank.measure(job, &profile), job.submitted_at);
        self.queue.insert_with_class(job.id, self.needs(&job.demand, &profile), key);
        self.profiles.insert(job.id, profile);
    }

    /// Backfill tells the long from the short, and looks at no more of the long than it must.
    fn needs(&self, demand: &Demand, profile: &Profile) -> ClassKey {
        match self.discipline {
            Discipline::Strict | Discipline::WorkConserving => ClassKey::Room(*demand),
            Discipline::Backfill => ClassKey::RoomFor(*demand, log2_micros(profile.runtime)),
        }
    }

    fn forget(&mut self, job: JobId) {
        self.queue.remove(job);
        self.profiles.remove(&job);
        self.ends.remove(job);
    }

    fn expect_end(&mut self, job: &RunningJob, now: Time) {
        if self.discipline == Discipline::Backfill {
            let profile = self.place.profile(&job.demand, &job.traits);
            let slowdown = self.place.slowdown(&profile, &job.placement);
            self.ends.insert(job, profile.runtime_at(slowdown), now);
        }
    }
}

impl<R: JobOrder, P: Placer> Policy for QueuePolicy<R, P> {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.place.learn(view, changes);
        if self.place.prepare(view) == ClusterChange::Changed {
            view.pending.values().for_each(|job| self.enqueue(job));
        }
        for change in changes {
            match change {
                ViewChange::Pending(job) => {
                    self.forget(job.id);
                    self.enqueue(job);
                }
                ViewChange::Running(job) => {
                    self.forget(job.id);
                    self.expect_end(job, view.now);
                }
                ViewChange::Gone(job) => self.forget(*job),
                ViewChange::Node(_) | ViewChange::NodeGone(_) => {}
            }
        }
    }

    fn plan(&mut self, view: &View) -> Plan {
        let mut draft = Draft::new(view, self.discipline);
        let mut walk = self.queue.walk();
        while let Some(turn) = walk.next() {
            let profile = &self.profiles[&turn.job];
            match draft.consider(turn.job, profile, &mut self.place, &mut self.ends) {
                WalkControl::Others => {}
                WalkControl::OtherClasses => walk.close(),
                WalkControl::Nobody => break,
            }
        }
        draft.into_plan()
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        let mut prospects =
            list_pending_reasons(&self.queue, |job| self.profiles.get(&job), &mut self.place, view);
        if self.discipline == Discipline::Backfill {
            self.explain_reservation(view, &mut prospects);
        }
        prospects
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

impl<R: JobOrder, P: Placer> QueuePolicy<R, P> {
    /// Says so to the job that has a reservation, and to those that it keeps waiting.
    fn explain_reservation(&mut self, view: &View, prospects: &mut [PendingReason]) {
        let mut draft = Draft::new(view, self.discipline);
        let mut holder = None;
        for prospect in prospects {
            if let Some(holder) = holder {
                if prospect.code == ReasonCode::WaitingForTurn {
                    let in_the_way = format!("it would still run when the room for job {holder} is due");
                    prospect.why = format!("{}; {in_the_way}", prospect.why);
                }
                continue;
            }
            if let Some(at) = draft.reserve(&view.pending[&prospect.job], &mut self.ends) {
                let wait = at.since(view.now);
                prospect.why = format!("{}; room is reserved for it in {wait} at the latest", prospect.why);
                holder = Some(prospect.job);
            }
        }
    }
}
