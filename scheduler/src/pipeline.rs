//! Most policies change only the order of jobs, or only the choice of their place: a pipeline joins the two,
//! and a discipline says what becomes of those behind a job that has no room.
//!
//! It never stops a job that runs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use cohabit_proto::{Demand, JobId, Placement, ReasonCode, Span, Time};

use crate::ends::Ends;
use crate::prospects::waiting_in;
use crate::reservation::{Reservation, Starting};
use crate::without_room::WithoutRoom;
use crate::{
    Action, Change, Cluster, FreeNodes, Needs, PendingJob, Place, Plan, Policy, Profile, Proposal, Prospect,
    Queue, RunningJob, Turn, View,
};

/// An order of precedence.
pub trait Rank: Send {
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
    /// They may pass as long as the first one without room does not start later for it, as far as runtimes are
    /// what is expected: EASY backfill.
    Backfill,
}

/// First come, first served.
#[derive(Debug, Default, Clone, Copy)]
pub struct Fifo;

impl Rank for Fifo {
    fn measure(&self, _: &PendingJob, _: &Profile) -> u128 {
        0
    }
}

/// Larger priorities first, then the smaller measure, then the earlier submission.
pub(crate) type Key = (Reverse<i32>, u128, Time);

/// A policy made of an order, a choice of place and a discipline.
#[derive(Debug, Clone)]
pub struct Pipeline<R, P> {
    rank: R,
    place: P,
    discipline: Discipline,
    queue: Queue<Key>,
    profiles: BTreeMap<JobId, Profile>,
    /// Kept for backfill alone.
    ends: Ends,
}

/// A plan in the making.
struct Draft<'v> {
    view: &'v View,
    free: FreeNodes<'v>,
    plan: Plan,
    starting: Vec<Starting<'v>>,
    without_room: WithoutRoom,
    /// Made for the first job without room.
    reservation: Option<Reservation<'v>>,
    /// Demands of jobs that were refused because they would still run when the reservation begins.
    refused: BTreeSet<Demand>,
}

impl<R: Rank, P: Place> Pipeline<R, P> {
    /// Joins them.
    pub fn new(rank: R, place: P, discipline: Discipline) -> Pipeline<R, P> {
        Pipeline {
            rank,
            place,
            discipline,
            queue: Queue::default(),
            profiles: BTreeMap::new(),
            ends: Ends::default(),
        }
    }

    fn enqueue(&mut self, job: &PendingJob) {
        let profile = self.place.profile(&job.demand, &job.traits);
        let key = (Reverse(job.priority), self.rank.measure(job, &profile), job.submitted_at);
        self.queue.insert_needing(job.id, self.needs(&job.demand, &profile), key);
        self.profiles.insert(job.id, profile);
    }

    /// Backfill tells the long from the short, and looks at no more of the long than it must.
    fn needs(&self, demand: &Demand, profile: &Profile) -> Needs {
        match self.discipline {
            Discipline::Strict | Discipline::WorkConserving => Needs::Room(*demand),
            Discipline::Backfill => Needs::RoomFor(*demand, octave(profile.runtime)),
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

    /// Looks for room for the job whose turn it is; says what that means for those behind it.
    fn consider<'v>(&mut self, draft: &mut Draft<'v>, turn: Turn<Key>) -> Next {
        let (job, profile) = (&draft.view.pending[&turn.job], &self.profiles[&turn.job]);
        if draft.refuses(&job.demand, profile.runtime) {
            let shortest_alike = Span::from_micros(1 << octave(profile.runtime));
            let all_alike = draft.refuses(&job.demand, shortest_alike);
            return if all_alike { Next::OtherClasses } else { Next::Others };
        }
        if !draft.without_room.covers(&job.demand)
            && let Ok(proposal) = self.place.place(job, profile, &draft.free)
        {
            draft.start(job, profile, proposal);
            return Next::Others;
        }
        draft.without_room.insert(job.demand);
        match self.discipline {
            Discipline::Strict if draft.free.could_ever_hold(&job.demand) => Next::Nobody,
            Discipline::Strict | Discipline::WorkConserving => Next::OtherClasses,
            Discipline::Backfill => {
                draft.reserve(job, &mut self.ends);
                Next::OtherClasses
            }
        }
    }
}

/// Whose turn it may be after a job.
enum Next {
    Others,
    OtherClasses,
    Nobody,
}

impl<'v> Draft<'v> {
    fn new(view: &'v View) -> Draft<'v> {
        Draft {
            view,
            free: FreeNodes::new(&view.nodes),
            plan: Plan::default(),
            starting: Vec::new(),
            without_room: WithoutRoom::default(),
            reservation: None,
            refused: BTreeSet::new(),
        }
    }

    fn reserve(&mut self, job: &PendingJob, ends: &mut Ends) {
        if self.reservation.is_none() && self.free.could_ever_hold(&job.demand) {
            let ends = ends.after(self.view.now);
            self.reservation = Reservation::new(&job.demand, &self.free, self.view, ends, &self.starting);
        }
    }

    /// Whether a job of this runtime would be in the way of the reservation, as another with its demand was.
    fn refuses(&self, demand: &Demand, runtime: Span) -> bool {
        let lasts = |it: &Reservation<'_>| self.view.now + runtime > it.at;
        self.reservation.as_ref().is_some_and(lasts) && self.refused.contains(demand)
    }

    fn start(&mut self, job: &'v PendingJob, profile: &Profile, proposal: Proposal) {
        let Proposal { placement, slowdown, why } = proposal;
        let ends_at = self.view.now + profile.runtime_at(slowdown);
        let admitted = match &mut self.reservation {
            Some(reservation) => reservation.admits(&job.demand, &placement, ends_at),
            None => true,
        };
        if !admitted {
            self.refused.insert(job.demand);
            return;
        }
        self.free.take(&job.demand, &placement);
        self.plan.actions.push(start(job.id, placement.clone(), why));
        self.starting.push(Starting { ends_at, demand: &job.demand, placement });
    }
}

/// The power of two, in microseconds, that is next below a runtime.
const fn octave(runtime: Span) -> u32 {
    match runtime.as_micros().checked_ilog2() {
        Some(octave) => octave,
        None => 0,
    }
}

impl<R: Rank, P: Place> Policy for Pipeline<R, P> {
    fn learn(&mut self, view: &View, changes: &[Change]) {
        if self.place.prepare(view) == Cluster::Changed {
            view.pending.values().for_each(|job| self.enqueue(job));
        }
        for change in changes {
            match change {
                Change::Pending(job) => {
                    self.forget(job.id);
                    self.enqueue(job);
                }
                Change::Running(job) => {
                    self.forget(job.id);
                    self.expect_end(job, view.now);
                }
                Change::Gone(job) => self.forget(*job),
                Change::Node(_) | Change::NodeGone(_) => {}
            }
        }
    }

    fn plan(&mut self, view: &View) -> Plan {
        let mut draft = Draft::new(view);
        let queue = std::mem::take(&mut self.queue);
        let mut walk = queue.walk();
        while let Some(turn) = walk.next() {
            match self.consider(&mut draft, turn) {
                Next::Others => {}
                Next::OtherClasses => walk.close(),
                Next::Nobody => break,
            }
        }
        self.queue = queue;
        draft.plan
    }

    fn outlook(&mut self, view: &View) -> Vec<Prospect> {
        let mut prospects = waiting_in(&self.queue, |job| self.profiles.get(&job), &mut self.place, view);
        if self.discipline == Discipline::Backfill {
            self.tell_reservation(view, &mut prospects);
        }
        prospects
    }
}

impl<R: Rank, P: Place> Pipeline<R, P> {
    /// Says so to the job that has a reservation, and to those that it keeps waiting.
    fn tell_reservation(&mut self, view: &View, prospects: &mut [Prospect]) {
        let mut draft = Draft::new(view);
        let mut holder = None;
        for prospect in prospects {
            if let Some(holder) = holder {
                if prospect.code == ReasonCode::WaitingForTurn {
                    let in_the_way = format!("it would still run when the room for job {holder} is due");
                    prospect.why = format!("{}; {in_the_way}", prospect.why);
                }
                continue;
            }
            draft.reserve(&view.pending[&prospect.job], &mut self.ends);
            if let Some(reservation) = &draft.reservation {
                let wait = reservation.at.since(view.now);
                prospect.why = format!("{}; room is reserved for it in {wait} at the latest", prospect.why);
                holder = Some(prospect.job);
            }
        }
    }
}

pub(crate) const fn start(job: JobId, placement: Placement, why: String) -> Action {
    Action::Place { job, placement, why }
}
