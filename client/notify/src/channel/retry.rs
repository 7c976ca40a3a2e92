//! The pauses between attempts: doubled from one second to an hour while a channel takes nothing.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(3_600);

/// The pause before the next attempt.
#[derive(Debug)]
pub(super) struct RetryPause(Duration);

impl Default for RetryPause {
    fn default() -> RetryPause {
        RetryPause(FIRST)
    }
}

impl RetryPause {
    /// An attempt has failed: how long to wait, and at least for as long as the receiver asks.
    pub(super) fn after_failure(&mut self, asked: Option<Duration>) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(LONGEST);
        pause.max(asked.unwrap_or_default())
    }

    /// An attempt has succeeded.
    pub(super) fn reset(&mut self) {
        *self = RetryPause::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour_and_begin_anew_after_a_success() {
        let mut pause = RetryPause::default();
        let secs: Vec<u64> = (0..14).map(|_| pause.after_failure(None).as_secs()).collect();
        assert_eq!(secs, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 3_600, 3_600]);
        pause.reset();
        assert_eq!(pause.after_failure(Some(Duration::from_secs(7))).as_secs(), 7);
        assert_eq!(pause.after_failure(Some(Duration::from_secs(1))).as_secs(), 2);
    }
}
