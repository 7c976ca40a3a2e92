//! Jobs that run in slices of their time limit, and time limits of gangs.

use cohabit_types::{JobEventKind, JobSpec, JobState, Outcome, ReasonCode, Signal, Span, StopReason};

use super::kit::*;

const SLICE: Span = Span::from_secs(14_400);

#[test]
fn a_job_in_slices_is_queued_again_at_its_time_limit_and_uses_no_retry() {
    let mut test = TestHead::with_devices(1);
    let spec = JobSpec { time_limit: Some(SLICE), requeue_on_timeout: true, ..gpus(1) };
    let id = test.submit(spec);
    for attempt in 1..=20 {
        // A program that handled the signal may exit with code 0: it has saved, and is not done.
        let outcome = if attempt % 2 == 0 { Outcome::Exited(0) } else { Outcome::Signalled(Signal::TERM) };
        test.after(SLICE);
        test.ended(rank(1, attempt), outcome, Some(StopReason::TimeLimit));
        assert_eq!(test.state(id), JobState::Running, "attempt {attempt}");
    }
    let is_requeue = |kind: &JobEventKind| {
        matches!(kind, JobEventKind::Requeued { failures: 0, why: Some(StopReason::TimeLimit), .. })
    };
    assert!(test.head.job_history(id).iter().any(|event| is_requeue(&event.kind)));
    test.ended(rank(1, 21), Outcome::Exited(0), None);
    assert_eq!(test.state(id), JobState::Completed);
}

/// The other ranks of a gang that reached its limit are stopped because the first one ended.
#[test]
fn a_gang_that_reaches_its_time_limit_ends_for_that_reason() {
    for (requeue_on_timeout, state) in [(false, JobState::Timeout), (true, JobState::Running)] {
        let mut test = TestHead::with_devices(2);
        let launch = cohabit_types::LaunchMode::PerGpu;
        let id = test.submit(JobSpec { time_limit: Some(SLICE), requeue_on_timeout, launch, ..gpus(2) });
        let terminated = || Outcome::Signalled(Signal::TERM);
        test.ended(id.attempt(1).rank(0), terminated(), Some(StopReason::TimeLimit));
        assert_eq!(test.state(id), JobState::Completing);
        test.ended(id.attempt(1).rank(1), terminated(), Some(StopReason::GangBroken));
        assert_eq!(test.state(id), state);
    }
}

#[test]
fn a_rank_that_fails_just_before_the_limit_fails_its_gang() {
    let mut test = TestHead::with_devices(2);
    let launch = cohabit_types::LaunchMode::PerGpu;
    let id = test.submit(JobSpec { time_limit: Some(SLICE), launch, ..gpus(2) });
    test.ended(id.attempt(1).rank(0), Outcome::Exited(3), None);
    test.ended(id.attempt(1).rank(1), Outcome::Signalled(Signal::TERM), Some(StopReason::TimeLimit));
    let record = test.record(id);
    assert_eq!((record.state, record.reason_code), (JobState::Failed, ReasonCode::ExitCode));
}
