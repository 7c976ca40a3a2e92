//! The worker's clock: microseconds since 1970, independent of changes of the system time.
//!
//! It is the time of boot plus the monotonic clock, so spans keep their length when the system time is
//! changed, and time limits are exact. The first daemon after a boot stores the time of boot; later daemons
//! and executors use the same.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use cohabit_types::{Span, Time};
use nix::time::{ClockId, clock_gettime};

static BOOTED_AT: OnceLock<Time> = OnceLock::new();

/// The current time.
#[must_use]
pub fn now() -> Time {
    booted_at() + since_boot()
}

/// The time of boot that this process uses.
#[must_use]
pub fn booted_at() -> Time {
    *BOOTED_AT.get_or_init(|| wall_clock() - since_boot())
}

/// Uses this time of boot, unless this process has already read the clock.
pub fn agree_on(booted_at: Time) {
    let _ = BOOTED_AT.set(booted_at);
}

/// The system time, which programs of jobs use; a time before 1970 becomes the epoch.
#[must_use]
pub fn wall_clock() -> Time {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::EPOCH + Span::from(since_epoch)
}

/// The time since boot, which is the same to all processes.
#[must_use]
pub fn since_boot() -> Span {
    let passed = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    Span::from(std::time::Duration::from(passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_boot_does_not_change_within_a_process() {
        let before = now();
        agree_on(Time::EPOCH);
        assert!(now() >= before);
        assert!(
            now().since(wall_clock()) < Span::from_secs(60)
                && wall_clock().since(now()) < Span::from_secs(60)
        );
    }
}
