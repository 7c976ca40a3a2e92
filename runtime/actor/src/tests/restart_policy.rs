//! The arithmetic of restart limits and delays.

use super::test_kit::ms;
use crate::restart_policy::{RestartHistory, RestartPolicy};
use tokio::time::Instant;

fn restarts(limit: u32) -> RestartHistory {
    RestartHistory::new(RestartPolicy { limit, window: ms(10_000), first_delay: ms(100), max_delay: ms(350) })
}

#[test]
fn the_delay_doubles_up_to_its_cap_until_the_limit() {
    let (mut restarts, now) = (restarts(4), Instant::now());
    let delays: Vec<_> = (0..5).map(|_| restarts.next_delay(now)).collect();
    assert_eq!(delays, [Some(ms(100)), Some(ms(200)), Some(ms(350)), Some(ms(350)), None]);
    assert_eq!(restarts.count(), 4);
}

#[test]
fn restarts_before_the_window_are_forgotten() {
    let (mut restarts, start) = (restarts(4), Instant::now());
    restarts.next_delay(start);
    restarts.next_delay(start + ms(5_000));
    assert_eq!(restarts.next_delay(start + ms(10_100)), Some(ms(200)), "one is left");
    assert_eq!(restarts.next_delay(start + ms(60_000)), Some(ms(100)), "none is left");
}

#[test]
fn a_limit_of_zero_allows_no_restart() {
    assert_eq!(restarts(0).next_delay(Instant::now()), None);
}

#[test]
fn a_huge_limit_does_not_overflow_the_delay() {
    let mut restarts = restarts(u32::MAX);
    let now = Instant::now();
    assert_eq!((0..100).filter_map(|_| restarts.next_delay(now)).max(), Some(ms(350)));
}
