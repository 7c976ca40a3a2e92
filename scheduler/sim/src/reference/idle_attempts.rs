//! The attempts of which their workers said that they do nothing.

use std::collections::BTreeMap;

use cohabit_types::{AttemptId, Report, Span, Time};

/// An interactive job that does nothing for so long is stopped even if nobody waits.
const AT_MOST: Span = Span::from_secs(8 * 3_600);

/// Since when they do nothing, by the head's clock.
#[derive(Debug, Default)]
pub(super) struct IdleAttempts {
    since: BTreeMap<AttemptId, Time>,
}

impl IdleAttempts {
    /// Takes note of a report of the worker of the first rank.
    pub(super) fn note(&mut self, report: &Report, at: Time) {
        if let Report::Idle { attempt, quiet_for, .. } = report {
            let since = self.since.entry(*attempt).or_insert(at);
            *since = (*since).min(at - *quiet_for);
        } else if let Report::Active(attempt) = report {
            self.since.remove(attempt);
        }
    }

    /// The worker of these has a new link, and tells again what they do.
    pub(super) fn forget(&mut self, are_there: impl Fn(AttemptId) -> bool) {
        self.since.retain(|attempt, _| !are_there(*attempt));
    }

    /// Whether an attempt has done nothing for so long that it may be stopped for somebody else.
    pub(super) fn may_be_stopped(&self, attempt: AttemptId, stop: Option<Span>, at: Time) -> bool {
        stop.zip(self.since.get(&attempt)).is_some_and(|(stop, since)| *since + stop <= at)
    }

    /// Whether it has done nothing for so long that it is stopped in any case.
    pub(super) fn has_to_stop(&self, attempt: AttemptId, stop: Option<Span>, at: Time) -> bool {
        stop.is_some_and(|stop| self.may_be_stopped(attempt, Some(stop.max(AT_MOST)), at))
    }
}
