//! When an MPS daemon that did not start is tried again.
//!
//! A start fails for reasons that pass: a driver that is being upgraded, a device that another program holds
//! for itself, a first context that takes too long. So no failure is final, and the pauses between tries
//! grow.

use cohabit_types::{Span, Time};

/// The pause after the first failure; each later one is twice as long.
const FIRST_PAUSE: Span = Span::from_secs(10);
const MAX_PAUSE: Span = Span::from_secs(600);

/// A daemon that did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MpsStartFailure {
    why: String,
    pause: Span,
    retry_at: Time,
}

impl MpsStartFailure {
    /// It failed for this reason, after an earlier failure or none.
    pub(crate) fn new(now: Time, why: String, earlier: Option<&MpsStartFailure>) -> MpsStartFailure {
        let pause = earlier.map_or(FIRST_PAUSE, |earlier| (earlier.pause + earlier.pause).min(MAX_PAUSE));
        MpsStartFailure { why, pause, retry_at: now + pause }
    }

    /// Why, and that it is tried again.
    pub(crate) fn reason(&self) -> String {
        format!("{}; it is tried again in pauses of up to 10 minutes, while no job runs on the GPU", self.why)
    }

    pub(crate) const fn retry_at(&self) -> Time {
        self.retry_at
    }

    /// Its time has come. It is being tried, or cannot be because ranks are on the GPU.
    pub(crate) fn postpone(&mut self, now: Time) {
        self.retry_at = now + FIRST_PAUSE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_ten_minutes() {
        let mut last: Option<MpsStartFailure> = None;
        for secs in [10, 20, 40, 80, 160, 320, 600, 600] {
            let failure = MpsStartFailure::new(Time::EPOCH, "no device".into(), last.as_ref());
            assert_eq!(failure.retry_at(), Time::EPOCH + Span::from_secs(secs));
            last = Some(failure);
        }
    }
}
