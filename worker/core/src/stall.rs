//! Notices when a running rank reports no step any more.
//!
//! Of the ranks of an attempt on this host only one counts: the lowest that reports any progress, or rank 0
//! while none does. A host without either cannot know whether its attempt makes progress.

use cohabit_types::{AttemptId, RankId, Report, StallAction, StallPolicy, StopReason, Time};

use crate::interface::WorkerEffect;
use crate::rank::{RankEntry, RankState};
use crate::stall_watch::StallWatch;
use crate::state::Worker;

impl Worker {
    /// When the next attempt counts as stalled.
    pub(crate) fn stall_deadline(&self) -> Option<Time> {
        self.watched().filter_map(|(_, watch)| watch.deadline()).min()
    }

    /// Reports the attempts that count as stalled since now, and stops those that are to be queued again.
    pub(crate) fn notice_stalls(&mut self, now: Time, out: &mut Vec<WorkerEffect>) {
        let is_due = |watch: &StallWatch| watch.deadline().is_some_and(|at| at <= now);
        let due: Vec<(RankId, StallPolicy)> =
            self.watched().filter(|(_, it)| is_due(it)).map(|(rank, watch)| (rank, watch.policy)).collect();
        for (rank, policy) in due {
            if let Some(RankState::Running { stall: Some(watch), .. }) =
                self.ranks.get_mut(&rank).map(|held| &mut held.state)
            {
                watch.is_noticed = true;
            }
            self.report(self.stall_report(now, rank.attempt), out);
            if policy.action == StallAction::Requeue {
                self.stop(now, rank.attempt, StopReason::Stalled, out);
            }
        }
    }

    /// The report that an attempt is stalled, if it is.
    pub(crate) fn stall_report(&self, now: Time, attempt: AttemptId) -> Option<Report> {
        let watch = self.watch_of(attempt).filter(|(_, watch)| watch.is_noticed).map(|(_, watch)| watch)?;
        Some(Report::Stalled { attempt, quiet_for: watch.quiet_for(now), step: watch.step })
    }

    /// The ranks that tell whether their attempts are stalled.
    fn watched(&self) -> impl Iterator<Item = (RankId, &StallWatch)> {
        let is_watched = |held: &RankEntry| matches!(held.state, RankState::Running { stall: Some(_), .. });
        let ranks = self.ranks.iter().filter(move |(_, held)| is_watched(held)).map(|(rank, _)| rank);
        ranks.filter_map(|rank| self.watch_of(rank.attempt).filter(|(it, _)| it == rank))
    }

    /// The rank that tells whether this attempt is stalled, unless it is being stopped.
    fn watch_of(&self, attempt: AttemptId) -> Option<(RankId, &StallWatch)> {
        let rank = self.reporting_rank(attempt).map_or(attempt.rank(0), |(rank, _)| rank);
        match &self.ranks.get(&rank)?.state {
            RankState::Running { sequence, stall: Some(watch), .. } if sequence.stopping().is_none() => {
                Some((rank, watch))
            }
            RankState::Running { .. }
            | RankState::Waiting(_)
            | RankState::Starting(_)
            | RankState::Ended(_) => None,
        }
    }
}
