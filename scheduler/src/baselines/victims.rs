//! Running jobs that may be stopped for the sake of more urgent ones, the least urgent first.
//!
//! It picks as few as it finds, and none that ran for less than its quantum; it never decides who is urgent.
//! Nobody is stopped for an equal that was only submitted earlier: that would cost a stop and gain nothing.

use std::cmp::Reverse;

use cohabit_proto::{Demand, JobId, Time};

use crate::fitting::Fitting;
use crate::pipeline::Key;
use crate::{FreeNodes, View};

/// What puts a job ahead of running ones: its priority, then its urgency.
pub(super) type Rank = (Reverse<i32>, u128);

/// A key without what only puts waiting jobs in order.
pub(super) const fn rank((priority, measure, _): Key) -> Rank {
    (priority, measure)
}

/// A running job, as it stands among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Standing {
    pub(super) key: Key,
    pub(super) job: JobId,
    /// When its quantum is over.
    pub(super) safe_until: Time,
}

/// Who may have to stop.
#[derive(Debug, Clone, Default)]
pub(super) struct Victims {
    /// Least urgent last.
    standings: Vec<Standing>,
    /// When a job that was passed over because of its quantum may be stopped.
    pub(super) next_unsafe: Option<Time>,
}

impl Victims {
    pub(super) fn new(mut standings: Vec<Standing>) -> Victims {
        standings.sort_unstable();
        Victims { standings, next_unsafe: None }
    }

    /// Takes out those that have to stop so that a job finds room, and leaves behind what is free once they
    /// have; `None`, and nobody is taken, if not even all that are less urgent make room.
    pub(super) fn make_room<'v>(
        &mut self,
        (ahead, demand): (Rank, &Demand),
        free: &FreeNodes<'v>,
        view: &View,
    ) -> Option<(Vec<JobId>, FreeNodes<'v>)> {
        let less_urgent = |it: &&Standing| rank(it.key) > ahead;
        if !self.standings.last().is_some_and(|last| less_urgent(&last)) {
            return None;
        }
        let mut fitting = Fitting::new(free.clone(), *demand);
        let mut chosen: Vec<JobId> = Vec::new();
        for standing in self.standings.iter().rev().take_while(less_urgent) {
            if fitting.fits() {
                break;
            }
            if standing.safe_until > view.now {
                let earlier = self.next_unsafe.map_or(standing.safe_until, |at| at.min(standing.safe_until));
                self.next_unsafe = Some(earlier);
                continue;
            }
            let running = &view.running[&standing.job];
            fitting.give_back(&running.demand, &running.placement);
            chosen.push(standing.job);
        }
        if !fitting.fits() {
            return None;
        }
        spare(&mut chosen, &mut fitting, view);
        self.standings.retain(|standing| !chosen.contains(&standing.job));
        Some((chosen, fitting.into_free()))
    }
}

/// Leaves out those that make no difference, the more urgent first.
fn spare(chosen: &mut Vec<JobId>, fitting: &mut Fitting<'_>, view: &View) {
    for position in (0..chosen.len()).rev() {
        let running = &view.running[&chosen[position]];
        fitting.take(&running.demand, &running.placement);
        if fitting.fits() {
            chosen.remove(position);
        } else {
            fitting.give_back(&running.demand, &running.placement);
        }
    }
}
