//! The steps of one running rank, and since when there was no new one.

use cohabit_types::{Progress, Span, StallPolicy, Time};

/// Watches the steps of one running rank.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StallWatch {
    pub(crate) policy: StallPolicy,
    /// The latest step, if there was one.
    pub(crate) step: Option<u64>,
    /// When that step was first reported; without one, when the rank started.
    since: Time,
    /// Whether this stall was noticed.
    pub(crate) is_noticed: bool,
}

impl StallWatch {
    /// `progress` is what an earlier worker daemon knew.
    pub(crate) fn new(policy: StallPolicy, started_at: Time, progress: Option<&Progress>) -> StallWatch {
        StallWatch {
            policy,
            step: progress.map(|it| it.step),
            since: progress.map_or(started_at, |it| it.at),
            is_noticed: false,
        }
    }

    /// The rank reported this step.
    pub(crate) fn step(&mut self, now: Time, step: u64) {
        if self.step != Some(step) {
            (self.step, self.since, self.is_noticed) = (Some(step), now, false);
        }
    }

    /// When the rank counts as stalled; none once that was noticed.
    pub(crate) fn deadline(&self) -> Option<Time> {
        (!self.is_noticed).then(|| self.since + self.policy.timeout)
    }

    /// The time without a new step.
    pub(crate) fn quiet_for(&self, now: Time) -> Span {
        now.since(self.since)
    }
}
