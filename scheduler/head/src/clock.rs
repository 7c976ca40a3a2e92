//! The head's clock: microseconds since 1970 that never go backwards, whatever the machine's clock does.
//!
//! It follows the machine's clock, because users state begin times by it. If the machine's clock is set
//! back, this clock runs at half speed until both agree, so a deadline comes after twice its time at most.
//! If the machine's clock is set forward, this clock leaps and reports by how much, so that deadlines can
//! exclude a time in which nothing could happen.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cohabit_types::{Span, Time};

/// The largest gain of the machine's clock on the elapsed time that does not count as a leap.
const SLACK: Span = Span::from_secs(1);

/// Reads the time.
#[derive(Debug)]
pub(crate) struct Clock {
    last: Time,
    read_at: Instant,
    leapt: Span,
}

impl Clock {
    /// A clock that continues after `last`. The time since then counts as a leap, because the head was not
    /// running.
    pub(crate) fn after(last: Time) -> Clock {
        let now = last.max(wall_clock());
        let leapt = if last == Time::EPOCH { Span::ZERO } else { now.since(last) };
        Clock { last: now, read_at: Instant::now(), leapt }
    }

    /// The current time; never before an earlier result.
    pub(crate) fn now(&mut self) -> Time {
        let passed = self.read_at.elapsed();
        self.read_at += passed;
        self.follow(passed, wall_clock())
    }

    /// The leap since the last call, if there was one.
    pub(crate) fn take_leap(&mut self) -> Option<Span> {
        Some(std::mem::take(&mut self.leapt)).filter(|leapt| *leapt > Span::ZERO)
    }

    fn follow(&mut self, passed: Duration, wall: Time) -> Time {
        let expected = self.last + passed.into();
        let leap = wall.since(expected);
        if leap > SLACK {
            self.leapt = self.leapt + leap;
        }
        self.last = wall.max(self.last + (passed / 2).into());
        self.last
    }
}

/// The machine's clock.
pub(crate) fn wall_clock() -> Time {
    // A clock before 1970 is not set yet. The head's clock runs at half speed until it is.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::EPOCH + Span::from(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Span = Span::from_secs(3_600);
    const TEN_SECONDS: Duration = Duration::from_secs(10);

    /// A clock, and the machine's time, which agree.
    fn in_agreement() -> (Clock, Time) {
        let clock = Clock::after(Time::EPOCH);
        let wall = clock.last;
        (clock, wall)
    }

    #[test]
    fn it_follows_the_machine_s_clock() {
        let (mut clock, wall) = in_agreement();
        let later = wall + TEN_SECONDS.into();
        assert_eq!(clock.follow(TEN_SECONDS, later), later);
        assert_eq!(clock.take_leap(), None);
        assert!(clock.now() >= later);
    }

    #[test]
    fn the_time_before_a_start_is_a_leap() {
        let leapt = Clock::after(wall_clock() - HOUR).take_leap().unwrap();
        assert!(leapt >= HOUR && leapt < HOUR + HOUR);
    }

    #[test]
    fn it_runs_at_half_speed_while_the_machine_s_clock_is_behind() {
        let (mut clock, wall) = in_agreement();
        let at = clock.follow(TEN_SECONDS, wall - HOUR);
        assert_eq!(at, wall + (TEN_SECONDS / 2).into());
        assert_eq!(clock.follow(2 * TEN_SECONDS, wall - HOUR), at + TEN_SECONDS.into());
        let ahead = wall_clock() + HOUR;
        assert!(Clock::after(ahead).now() >= ahead);
        assert_eq!(clock.take_leap(), None);
    }

    #[test]
    fn it_leaps_with_the_machine_s_clock_and_reports_each_leap_once() {
        let (mut clock, wall) = in_agreement();
        let set = wall + HOUR + TEN_SECONDS.into();
        assert_eq!(clock.follow(TEN_SECONDS, set), set);
        assert_eq!((clock.take_leap(), clock.take_leap()), (Some(HOUR), None));
    }
}
