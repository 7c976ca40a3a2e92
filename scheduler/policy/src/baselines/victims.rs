//! Running jobs that may be stopped for the sake of more urgent ones, the least urgent first.
//!
//! It picks as few as it finds, and none that ran for less than its quantum; it never decides who is urgent.
//! Nobody is stopped for an equal that was only submitted earlier: that would cost a stop and gain nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cohabit_types::{Demand, JobId, Time};

use super::releasable_devices::ReleasableDevices;
use crate::queue::PriorityKey;
use crate::queue::fit_tracker::FitTracker;
use crate::{FreeNodes, RunningJob, View};

/// What puts a job ahead of running ones: its priority, then its urgency.
pub(super) type UrgencyRank = (Reverse<i32>, u128);

/// A key without what only puts waiting jobs in order.
pub(super) const fn rank((priority, measure, _): PriorityKey) -> UrgencyRank {
    (priority, measure)
}

/// A running job, as it stands among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PreemptionCandidate {
    pub(super) key: PriorityKey,
    pub(super) job: JobId,
    /// When its quantum is over.
    pub(super) protected_until: Time,
}

/// Who may have to stop.
#[derive(Debug, Clone, Default)]
pub(super) struct Victims {
    /// Least urgent last.
    preemption_candidates: Vec<PreemptionCandidate>,
    /// When a job that was passed over because of its quantum may be stopped.
    pub(super) next_preemptible: Option<Time>,
}

impl Victims {
    pub(super) fn new(mut preemption_candidates: Vec<PreemptionCandidate>) -> Victims {
        preemption_candidates.sort_unstable();
        Victims { preemption_candidates, next_preemptible: None }
    }

    /// Takes out those that have to stop so that a job finds room, and leaves behind what is free once they
    /// have; `None`, and nobody is taken, if not even all that are less urgent make room.
    pub(super) fn make_room<'v>(
        &mut self,
        (ahead, demand): (UrgencyRank, &Demand),
        free: &FreeNodes<'v>,
        view: &View,
    ) -> Option<(Vec<JobId>, FreeNodes<'v>)> {
        let less_urgent = |it: &&PreemptionCandidate| rank(it.key) > ahead;
        let mut gathering = VictimSelection::new(demand, free);
        for standing in self.preemption_candidates.iter().rev().take_while(less_urgent) {
            if gathering.fitting.fits() {
                break;
            }
            if standing.protected_until > view.now {
                let earlier = self
                    .next_preemptible
                    .map_or(standing.protected_until, |at| at.min(standing.protected_until));
                self.next_preemptible = Some(earlier);
                continue;
            }
            gathering.add(&view.running[&standing.job], free);
        }
        let (chosen, free) = gathering.drop_needless()?;
        self.preemption_candidates.retain(|standing| !chosen.contains(&standing.job));
        Some((chosen, free))
    }
}

/// Those who stop, as far as they are found.
struct VictimSelection<'f, 'v> {
    fitting: FitTracker<'f>,
    reach: ReleasableDevices,
    asked: usize,
    /// In the order in which they were asked, which is that of their urgency.
    chosen: BTreeMap<usize, &'v RunningJob>,
    /// Those whose end is of no use unless more of their neighbours end.
    useless: Vec<(usize, &'v RunningJob)>,
}

impl<'f, 'v> VictimSelection<'f, 'v> {
    fn new(demand: &Demand, free: &FreeNodes<'f>) -> VictimSelection<'f, 'v> {
        VictimSelection {
            fitting: FitTracker::new(free.clone(), *demand),
            reach: ReleasableDevices::new(demand, free),
            asked: 0,
            chosen: BTreeMap::new(),
            useless: Vec::new(),
        }
    }

    /// The next one, and with it those whose end has become of use.
    fn add(&mut self, job: &'v RunningJob, free: &FreeNodes<'_>) {
        self.reach.count(&job.placement, free);
        self.useless.push((self.asked, job));
        self.asked += 1;
        if self.reach.helps(&job.placement, free) {
            for (order, job) in self.useless.extract_if(.., |(_, job)| self.reach.helps(&job.placement, free))
            {
                self.fitting.give_back(&job.demand, &job.placement);
                self.chosen.insert(order, job);
            }
        }
    }

    /// Leaves out those that make no difference, the more urgent first; nothing, if all are too few.
    fn drop_needless(mut self) -> Option<(Vec<JobId>, FreeNodes<'f>)> {
        if !self.fitting.fits() {
            return None;
        }
        let mut stopped = Vec::new();
        for job in self.chosen.into_values().rev() {
            self.fitting.take(&job.demand, &job.placement);
            if !self.fitting.fits() {
                self.fitting.give_back(&job.demand, &job.placement);
                stopped.push(job.id);
            }
        }
        stopped.reverse();
        Some((stopped, self.fitting.into_free()))
    }
}
