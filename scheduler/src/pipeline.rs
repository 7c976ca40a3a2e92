//! Most policies change only the order of jobs, or only the choice of their place: a pipeline joins the two.
//!
//! The pipeline is strict: when the first job in the order has no room, those behind it wait, so that no
//! large job starves. Only a job that the nodes now present could not even hold when empty is passed over.

use std::cmp::Reverse;

use cohabit_proto::{Placement, ReasonCode, Time};

use crate::{Action, Fact, FreeNodes, PendingJob, Plan, Policy, Shortage, View, Wait};

/// The order in which jobs are considered.
pub trait Rank: Send {
    /// Sorts the jobs; the first is placed first.
    fn rank(&mut self, now: Time, jobs: &mut Vec<&PendingJob>);
}

/// The choice of devices.
pub trait Place: Send {
    /// Where the job goes, with the reason for its story; or what there is too little of.
    ///
    /// # Errors
    /// The shortage that keeps the job waiting.
    fn place(&mut self, job: &PendingJob, free: &FreeNodes) -> Result<(Placement, String), Shortage>;
}

/// First come, first served, larger priorities before smaller ones.
#[derive(Debug, Default, Clone, Copy)]
pub struct Fifo;

impl Rank for Fifo {
    fn rank(&mut self, _: Time, jobs: &mut Vec<&PendingJob>) {
        jobs.sort_by_key(|job| (Reverse(job.priority), job.submitted_at, job.id));
    }
}

/// A policy made of an order and a choice of place.
#[derive(Debug, Default, Clone, Copy)]
pub struct Pipeline<R, P> {
    rank: R,
    place: P,
}

impl<R: Rank, P: Place> Pipeline<R, P> {
    /// Joins the two.
    pub const fn new(rank: R, place: P) -> Pipeline<R, P> {
        Pipeline { rank, place }
    }
}

impl<R: Rank, P: Place> Policy for Pipeline<R, P> {
    fn observe(&mut self, _: Time, _: &Fact) {}

    fn plan(&mut self, view: &View) -> Plan {
        let mut jobs: Vec<&PendingJob> = view.pending.iter().collect();
        self.rank.rank(view.now, &mut jobs);
        let mut free = FreeNodes::new(&view.nodes);
        let mut plan = Plan::default();
        for (ahead, job) in jobs.into_iter().enumerate() {
            match self.place.place(job, &free) {
                Ok((placement, why)) => {
                    free.take(&job.demand, &placement);
                    plan.actions.push(Action::Place { job: job.id, placement, why });
                }
                Err(shortage) => {
                    plan.waits.push(wait(job, &shortage, ahead - plan.actions.len()));
                    if free.could_ever_hold(&job.demand) {
                        break;
                    }
                }
            }
        }
        plan
    }
}

fn wait(job: &PendingJob, shortage: &Shortage, passed_over: usize) -> Wait {
    let place_in_line = match passed_over {
        0 => "it is next in line".to_owned(),
        _ => "only jobs that fit no present node are ahead of it".to_owned(),
    };
    let code = shortage.code();
    let why = if code == ReasonCode::WaitingForNodes {
        shortage.to_string()
    } else {
        format!("{shortage}; {place_in_line}")
    };
    Wait { job: job.id, code, why }
}
