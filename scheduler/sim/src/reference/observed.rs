//! The part of a job's record that must be consistent from one event to the next.

use cohabit_types::{
    AttemptRecord, DeviceId, HostShare, JobRecord, JobState, Outcome, RankRecord, ReasonCode, Share,
    StopReason, Time,
};

/// A job, from its record.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ObservedJob {
    pub(super) state: JobState,
    pub(super) reason: ReasonCode,
    pub(super) ended_at: Option<Time>,
    /// The latest ones, in the order of their numbers.
    pub(super) attempts: Vec<ObservedAttempt>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ObservedAttempt {
    pub(super) number: u32,
    pub(super) started_at: Time,
    pub(super) ended_at: Option<Time>,
    /// Why it was stopped; known once it has ended.
    pub(super) stopped: Option<StopReason>,
    pub(super) ranks: Vec<ObservedRank>,
    /// What it holds on each of its nodes; empty if what it claims is fixed.
    pub(super) host: Vec<HostShare>,
}

/// A rank, from its record.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ObservedRank {
    pub(super) node: String,
    pub(super) devices: Vec<DeviceId>,
    pub(super) share: Share,
    pub(super) outcome: Option<Outcome>,
}

impl ObservedJob {
    /// A newly accepted job.
    pub(super) const fn nothing() -> ObservedJob {
        let (state, reason) = (JobState::Pending, ReasonCode::WaitingForTurn);
        ObservedJob { state, reason, ended_at: None, attempts: Vec::new() }
    }

    pub(super) fn of(record: &JobRecord) -> ObservedJob {
        ObservedJob {
            state: record.state,
            // The reason of a waiting job is computed whenever somebody asks, so it is not compared.
            reason: if record.state.is_terminal() { record.reason_code } else { ReasonCode::WaitingForTurn },
            ended_at: record.ended_at,
            attempts: record.attempts.iter().map(ObservedAttempt::of).collect(),
        }
    }

    pub(super) fn live(&self) -> Option<&ObservedAttempt> {
        self.attempts.last().filter(|attempt| attempt.ended_at.is_none())
    }

    /// The attempt with this number, unless it ended so long ago that it is not kept.
    pub(super) fn attempt(&self, number: u32) -> Option<&ObservedAttempt> {
        self.attempts.iter().find(|attempt| attempt.number == number)
    }

    /// The number of its latest attempt; 0 if it had none.
    pub(super) fn latest_number(&self) -> u32 {
        self.attempts.last().map_or(0, |attempt| attempt.number)
    }
}

impl ObservedAttempt {
    fn of(record: &AttemptRecord) -> ObservedAttempt {
        ObservedAttempt {
            number: record.attempt,
            started_at: record.started_at,
            ended_at: record.ended_at,
            stopped: record.stopped.filter(|_| record.ended_at.is_some()),
            ranks: record.ranks.iter().map(ObservedRank::of).collect(),
            host: record.host.clone(),
        }
    }

    /// Whether each of its ranks succeeded.
    pub(super) fn succeeded(&self) -> bool {
        self.ranks.iter().all(|rank| rank.outcome.as_ref().is_some_and(Outcome::succeeded))
    }

    /// Whether this is the same attempt at a later time: nothing that was known has changed.
    pub(super) fn continues(&self, before: &ObservedAttempt) -> bool {
        let same_rank = |(after, before): (&ObservedRank, &ObservedRank)| {
            let same_place =
                (&after.node, &after.devices, after.share) == (&before.node, &before.devices, before.share);
            same_place && (before.outcome.is_none() || before.outcome == after.outcome)
        };
        (self.number, self.started_at, self.ranks.len())
            == (before.number, before.started_at, before.ranks.len())
            && self.ranks.iter().zip(&before.ranks).all(same_rank)
            && (before.ended_at.is_none() || self == before)
    }
}

impl ObservedRank {
    fn of(record: &RankRecord) -> ObservedRank {
        ObservedRank {
            node: record.node.clone(),
            devices: record.devices.clone(),
            share: record.share,
            outcome: record.outcome.clone(),
        }
    }
}
