//! The head's clock: microseconds since 1970, and never backwards, whatever the machine's clock does.

use std::time::{SystemTime, UNIX_EPOCH};

use cohabit_proto::{Span, Time};

/// Hands out times.
#[derive(Debug)]
pub(crate) struct Clock {
    last: Time,
}

impl Clock {
    /// A clock that goes on after `last`.
    pub(crate) fn after(last: Time) -> Clock {
        Clock { last }
    }

    /// The time now; not before any time handed out so far.
    pub(crate) fn now(&mut self) -> Time {
        self.last = self.last.max(wall_clock());
        self.last
    }
}

/// What the machine's clock says.
pub(crate) fn wall_clock() -> Time {
    // Before 1970 the clock is unset: time stands still until it is set.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::EPOCH + Span::from(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_while_the_machine_s_clock_is_behind() {
        let ahead = wall_clock() + Span::from_secs(3_600);
        let mut clock = Clock::after(ahead);
        assert_eq!(clock.now(), ahead);
        assert!(Clock::after(Time::EPOCH).now() > Time::EPOCH);
    }
}
