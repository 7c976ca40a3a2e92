//! One job in the reference model: what users requested, how it was last observed, and what its attempts
//! cost.

use cohabit_types::{JobSpec, JobState, Outcome, Span, StopReason, Time};

use super::failure_cause::FailureCause;
use super::observed::{ObservedAttempt, ObservedJob};

/// A job.
#[derive(Debug)]
pub(super) struct ReferenceJob {
    pub(super) observed: ObservedJob,
    pub(super) requests: UserRequests,
    /// The first failure of a rank of its live attempt.
    pub(super) first_bad: Option<Outcome>,
    /// Attempts that failed by the job's own fault since a user last queued it.
    pub(super) own_failures: u32,
    /// Attempts that failed by no fault of the job since then.
    pub(super) node_failures: u32,
}

/// What users requested of a job.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct UserRequests {
    /// A cancellation was confirmed, and nobody has requeued the job since.
    pub(super) cancelled: bool,
    /// Somebody has asked to requeue it.
    pub(super) requeued: bool,
    /// Somebody has requeued it after its end.
    pub(super) requeued_after_end: bool,
    /// A plan has preempted it.
    pub(super) preempted: bool,
    /// A plan has reclaimed its devices.
    pub(super) reclaimed: bool,
    /// It is interactive, and had done nothing for long when a plan stopped it, or for so long that it was
    /// due to stop.
    pub(super) stopped_as_idle: bool,
    /// It is held.
    pub(super) held: bool,
}

impl ReferenceJob {
    /// A newly accepted job.
    pub(super) fn new(spec: &JobSpec) -> ReferenceJob {
        ReferenceJob {
            observed: ObservedJob::nothing(),
            requests: UserRequests { held: spec.held, ..UserRequests::default() },
            first_bad: None,
            own_failures: 0,
            node_failures: 0,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        !self.observed.state.is_terminal()
    }

    pub(super) fn may_be_forgotten(&self, now: Time, retention: Span) -> bool {
        self.observed.ended_at.is_some_and(|ended_at| ended_at + retention <= now)
    }

    /// Resets the counts after a user has requeued the ended job.
    pub(super) fn reset_after_requeue(&mut self) {
        (self.own_failures, self.node_failures) = (0, 0);
        self.requests =
            UserRequests { cancelled: false, requeued_after_end: true, held: false, ..self.requests };
    }

    /// Takes in a change: the first failed rank, and the cause of a failed attempt. A store may end and be
    /// started again by one event.
    pub(super) fn note(&mut self, before: &ObservedJob, after: &ObservedJob) {
        for (place, attempt) in after.attempts.iter().enumerate() {
            if attempt.number < before.latest_number() {
                continue;
            }
            if attempt.number > before.latest_number() {
                self.first_bad = None;
            }
            self.note_attempt(before.attempt(attempt.number), &after.attempts[..=place], after.state);
        }
    }

    /// The last of these attempts has gone on.
    fn note_attempt(
        &mut self,
        known: Option<&ObservedAttempt>,
        attempts: &[ObservedAttempt],
        state: JobState,
    ) {
        let Some(attempt) = attempts.last() else { return };
        if self.first_bad.is_none() {
            self.first_bad = first_bad(attempt);
        }
        let has_ended = known.is_none_or(|it| it.ended_at.is_none()) && attempt.ended_at.is_some();
        match FailureCause::of(attempt, self.first_bad.as_ref()).filter(|_| has_ended) {
            Some(FailureCause::Own) => {
                self.own_failures += 1;
                self.requests.held |= state == JobState::Held && ran_isolated(attempts);
            }
            Some(FailureCause::Cluster) => self.node_failures += 1,
            Some(FailureCause::NoSpace | FailureCause::LostOrder) | None => {}
        }
    }
}

/// Whether the last attempt had its GPU to itself because the job's faults had broken MPS servers.
pub(super) fn ran_isolated(attempts: &[ObservedAttempt]) -> bool {
    let earlier = &attempts[..attempts.len().saturating_sub(1)];
    earlier.iter().filter(|attempt| attempt.stopped == Some(StopReason::MpsFault)).count() >= 2
}

/// Of ranks that failed at the same moment, the one with the lowest number.
fn first_bad(attempt: &ObservedAttempt) -> Option<Outcome> {
    let mut outcomes = attempt.ranks.iter().filter_map(|rank| rank.outcome.clone());
    outcomes.find(|outcome| !outcome.succeeded())
}
