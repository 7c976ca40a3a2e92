//! The worker's clock: microseconds since 1970, which nobody can set while the machine runs.
//!
//! What time it was is asked once; since then it counts as much as has passed. So a span keeps its length,
//! whatever is done to the machine's clock: a job is stopped by its time limit neither early nor late. The
//! first daemon since the start of the machine writes down when that was, by its lights, and all that come
//! after it, executors too, go by the same.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use cohabit_types::{Span, Time};
use nix::time::{ClockId, clock_gettime};

static BOOTED_AT: OnceLock<Time> = OnceLock::new();

/// What time it is.
pub fn now() -> Time {
    booted_at() + since_boot()
}

/// When the machine was started, as this process has it.
pub fn booted_at() -> Time {
    *BOOTED_AT.get_or_init(|| wall_clock() - since_boot())
}

/// Has it as others have it, unless this process has been asked for the time before.
pub fn agree_on(booted_at: Time) {
    let _ = BOOTED_AT.set(booted_at);
}

/// What the machine's clock says, by which programs go. One before 1970 reads as the epoch.
pub fn wall_clock() -> Time {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::EPOCH + Span::from(since_epoch)
}

fn since_boot() -> Span {
    let passed = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    Span::from(std::time::Duration::from(passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_goes_by_what_it_has_once_gone_by() {
        let before = now();
        agree_on(Time::EPOCH);
        assert!(now() >= before);
        assert!(
            now().since(wall_clock()) < Span::from_secs(60)
                && wall_clock().since(now()) < Span::from_secs(60)
        );
    }
}
