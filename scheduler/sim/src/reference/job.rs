//! One job, as the reference knows it: what was asked of it, how it was last seen, what its attempts cost.

use cohabit_types::{JobSpec, Outcome, Span, Time};

use super::failure_cause::FailureCause;
use super::observed::{ObservedAttempt, ObservedJob};

/// A job.
#[derive(Debug)]
pub(super) struct ReferenceJob {
    pub(super) seen: ObservedJob,
    pub(super) asked: UserRequests,
    /// The first rank of its live attempt that ended badly, in time.
    pub(super) first_bad: Option<Outcome>,
    /// Attempts that failed by their own fault since it was last queued by a user.
    pub(super) own_failures: u32,
    /// Attempts that ended by no fault of theirs since then.
    pub(super) node_failures: u32,
}

/// What users want of it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct UserRequests {
    /// Its cancellation was confirmed, and nobody has queued it again since.
    pub(super) cancelled: bool,
    /// Somebody ever wanted it to be queued again.
    pub(super) requeued: bool,
    /// Somebody has ever queued it again after its end.
    pub(super) revived: bool,
    /// A plan ever gave its devices to another.
    pub(super) preempted: bool,
    /// It is not to run, as far as is known.
    pub(super) held: bool,
}

impl ReferenceJob {
    /// As it is before anything happened to it.
    pub(super) fn new(spec: &JobSpec) -> ReferenceJob {
        ReferenceJob {
            seen: ObservedJob::nothing(),
            asked: UserRequests { held: spec.held, ..UserRequests::default() },
            first_bad: None,
            own_failures: 0,
            node_failures: 0,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        !self.seen.state.is_terminal()
    }

    pub(super) fn may_be_forgotten(&self, now: Time, retention: Span) -> bool {
        self.seen.ended_at.is_some_and(|ended_at| ended_at + retention <= now)
    }

    /// A user queued it again after its end: it counts anew.
    pub(super) fn revive(&mut self) {
        (self.own_failures, self.node_failures) = (0, 0);
        self.asked = UserRequests { cancelled: false, revived: true, held: false, ..self.asked };
    }

    /// It changed: which rank ended badly first, and whose fault the end of an attempt was.
    pub(super) fn note(&mut self, before: &ObservedJob, after: &ObservedJob) {
        if after.attempts.len() > before.attempts.len() {
            self.first_bad = None;
        }
        let Some(attempt) = after.attempts.last() else { return };
        let known = before.attempts.get(after.attempts.len() - 1);
        if self.first_bad.is_none() {
            self.first_bad = first_bad(attempt);
        }
        let has_ended = known.is_none_or(|it| it.ended_at.is_none()) && attempt.ended_at.is_some();
        match FailureCause::of(attempt, self.first_bad.as_ref()).filter(|_| has_ended) {
            Some(FailureCause::Own) => self.own_failures += 1,
            Some(FailureCause::Cluster) => self.node_failures += 1,
            Some(FailureCause::Room | FailureCause::LostOrder) | None => {}
        }
    }
}

/// Of ranks that ended badly at the same moment the lowest counts.
fn first_bad(attempt: &ObservedAttempt) -> Option<Outcome> {
    let mut outcomes = attempt.ranks.iter().filter_map(|rank| rank.outcome.clone());
    outcomes.find(|outcome| !outcome.succeeded())
}
