//! The head's clock: microseconds since 1970, and never backwards, whatever the machine's clock does.
//!
//! It follows the machine's clock, for people say by that one when a job may begin. Where that one was set
//! back, this one goes on at half its pace until it is right again: so what has a deadline waits for at most
//! twice as long. Where that one was set forward, this one leaps, and says how far: a time in which nothing
//! could happen.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cohabit_types::{Span, Time};

/// What the machine's clock may gain on the time that has passed and still count as the same.
const SLACK: Span = Span::from_secs(1);

/// Hands out times.
#[derive(Debug)]
pub(crate) struct Clock {
    last: Time,
    read_at: Instant,
    leapt: Span,
}

impl Clock {
    /// A clock that goes on after `last`. What has passed since then by the machine's clock counts as a leap:
    /// nobody was there to see whether it was lived through.
    pub(crate) fn after(last: Time) -> Clock {
        let now = last.max(wall_clock());
        let leapt = if last == Time::EPOCH { Span::ZERO } else { now.since(last) };
        Clock { last: now, read_at: Instant::now(), leapt }
    }

    /// The time now; not before any time handed out so far.
    pub(crate) fn now(&mut self) -> Time {
        let passed = self.read_at.elapsed();
        self.read_at += passed;
        self.follow(passed, wall_clock())
    }

    /// How far it has leapt since it was last asked.
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

/// What the machine's clock says.
pub(crate) fn wall_clock() -> Time {
    // Before 1970 the clock is unset: time goes on slowly until it is set.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::EPOCH + Span::from(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Span = Span::from_secs(3_600);
    const TEN_SECONDS: Duration = Duration::from_secs(10);

    /// A clock, and the machine's, both right.
    fn right() -> (Clock, Time) {
        let clock = Clock::after(Time::EPOCH);
        let wall = clock.last;
        (clock, wall)
    }

    #[test]
    fn it_follows_the_machine_s_clock() {
        let (mut clock, wall) = right();
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
    fn it_goes_on_slowly_while_the_machine_s_clock_is_behind() {
        let (mut clock, wall) = right();
        let at = clock.follow(TEN_SECONDS, wall - HOUR);
        assert_eq!(at, wall + (TEN_SECONDS / 2).into());
        assert_eq!(clock.follow(2 * TEN_SECONDS, wall - HOUR), at + TEN_SECONDS.into());
        let ahead = wall_clock() + HOUR;
        assert!(Clock::after(ahead).now() >= ahead);
        assert_eq!(clock.take_leap(), None);
    }

    #[test]
    fn it_leaps_with_the_machine_s_clock_and_says_how_far_once() {
        let (mut clock, wall) = right();
        let set = wall + HOUR + TEN_SECONDS.into();
        assert_eq!(clock.follow(TEN_SECONDS, set), set);
        assert_eq!((clock.take_leap(), clock.take_leap()), (Some(HOUR), None));
    }
}
