//! Running jobs that may be stopped for more urgent ones, the least urgent first.
//!
//! As few as possible are chosen, and none that has run for less than its quantum. No job is stopped for an
//! equally urgent one that was only submitted earlier: that would cost a stop and gain nothing. Who is
//! urgent is not decided here.

use std::cmp::Reverse;

use cohabit_fair_share::Displacement;
use cohabit_types::{Demand, JobId, Time};

use crate::queue::{PriorityKey, VictimSelection};
use crate::{FreeNodes, View};

/// What ranks a job against running ones: its priority, then its urgency.
pub(super) type UrgencyRank = (Reverse<i32>, u128);

/// A queue's key without its last part, which only orders pending jobs.
pub(super) const fn rank((priority, measure, _): PriorityKey) -> UrgencyRank {
    (priority, measure)
}

/// A running job that may be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PreemptionCandidate {
    pub(super) key: PriorityKey,
    pub(super) job: JobId,
    /// When its quantum ends.
    pub(super) protected_until: Time,
}

/// The jobs that may be stopped.
#[derive(Debug, Clone, Default)]
pub(super) struct Victims {
    /// The least urgent last.
    preemption_candidates: Vec<PreemptionCandidate>,
    /// When the first job that was protected by its quantum may be stopped.
    pub(super) next_preemptible: Option<Time>,
}

impl Victims {
    pub(super) fn new(mut preemption_candidates: Vec<PreemptionCandidate>) -> Victims {
        preemption_candidates.sort_unstable();
        Victims { preemption_candidates, next_preemptible: None }
    }

    /// Takes the jobs that have to stop so that a demand fits, and returns them with what is free once they
    /// have ended. `None`, and no job is taken, if stopping all less urgent jobs that may be stopped is not
    /// enough. Where users take turns, `displacement` says who may be.
    pub(super) fn make_room<'v>(
        &mut self,
        (ahead, demand): (UrgencyRank, &Demand),
        free: &FreeNodes<'v>,
        view: &View,
        mut displacement: Option<Displacement<'_>>,
    ) -> Option<(Vec<JobId>, FreeNodes<'v>)> {
        let less_urgent = |it: &&PreemptionCandidate| rank(it.key) > ahead;
        let mut selection = VictimSelection::new(demand, free);
        for candidate in self.preemption_candidates.iter().rev().take_while(less_urgent) {
            if selection.fits() {
                break;
            }
            let job = &view.running[&candidate.job];
            let (line, holds) = (view.line(&job.traits), job.holds);
            if displacement.as_ref().is_some_and(|it| !it.may_stop(line, holds)) {
                continue;
            }
            if candidate.protected_until > view.now {
                let earlier = self
                    .next_preemptible
                    .map_or(candidate.protected_until, |at| at.min(candidate.protected_until));
                self.next_preemptible = Some(earlier);
                continue;
            }
            selection.add(job, free);
            displacement.iter_mut().for_each(|it| it.stop(line, holds));
        }
        let (chosen, free) = selection.drop_needless()?;
        self.preemption_candidates.retain(|candidate| !chosen.contains(&candidate.job));
        Some((chosen, free))
    }
}
