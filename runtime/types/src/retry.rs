//! What happens after an attempt failed.

use serde::{Deserialize, Serialize};

use crate::Span;

/// What happens after an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// How many more attempts a failing job gets. Attempts lost with their node or stopped by us do not
    /// count.
    pub limit: u32,
    /// Pause before the first retry; it doubles each time.
    pub backoff: Span,
    /// The longest pause.
    pub backoff_cap: Span,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy { limit: 0, backoff: Span::from_secs(5), backoff_cap: Span::from_secs(600) }
    }
}

impl RetryPolicy {
    /// The pause before retry number `retry`, from 1: the back-off doubled for each earlier one, up to the
    /// cap.
    #[must_use]
    pub fn pause(&self, retry: u32) -> Span {
        let doublings = retry.saturating_sub(1).min(40);
        (self.backoff * (1 << doublings)).min(self.backoff_cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_its_cap() {
        let retry = RetryPolicy { limit: 9, backoff: Span::from_secs(5), backoff_cap: Span::from_secs(60) };
        let pauses: Vec<u64> = (1..=6).map(|n| retry.pause(n).as_micros() / 1_000_000).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 60, 60]);
    }
}
