//! Jobs that report no step any more, and the signals of a stop.

use cohabit_types::{
    JobEventKind, JobId, JobState, Outcome, ReasonCode, Report, Signal, Span, StallAction, StallPolicy,
    StopReason,
};

use super::kit::*;
use crate::interface::Event;

const TIMEOUT: Span = Span::from_secs(600);

fn stalled(step: Option<u64>) -> Event {
    let attempt = JobId::new(1).attempt(1);
    Event::Report(key(1, 1), Report::Stalled { attempt, quiet_for: TIMEOUT, step })
}

fn events(test: &TestHead, wanted: impl Fn(&JobEventKind) -> bool) -> usize {
    test.head.job_history(JobId::new(1)).iter().filter(|event| wanted(&event.kind)).count()
}

#[test]
fn the_history_tells_of_each_stall_once() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.event(stalled(Some(7)));
    test.event(stalled(Some(7)));
    test.event(stalled(Some(9)));
    assert_eq!(events(&test, |kind| matches!(kind, JobEventKind::Stalled { .. })), 2);
    assert_eq!(test.state(id), JobState::Running);
    let history = test.head.job_history(id);
    assert_eq!(
        history.last().unwrap().kind.to_string(),
        "attempt 1 stalled: 10 min 0 s without a step after step 9"
    );
}

#[test]
fn a_stalled_job_is_queued_again_as_often_as_the_cluster_allows() {
    let mut test = TestHead::with_devices(1);
    let stall = Some(StallPolicy { timeout: TIMEOUT, action: StallAction::Requeue });
    let id = test.submit(cohabit_types::JobSpec { stall, ..gpus(1) });
    let limit = test.head.config.node_failures;
    for attempt in 1..=limit {
        test.ended(rank(1, attempt), Outcome::Signalled(Signal::TERM), Some(StopReason::Stalled));
        assert_eq!(test.state(id), JobState::Running, "attempt {attempt}");
    }
    test.ended(rank(1, limit + 1), Outcome::Signalled(Signal::TERM), Some(StopReason::Stalled));
    let record = test.record(id);
    assert_eq!((record.state, record.reason_code), (JobState::Failed, ReasonCode::Stalled));
    assert!(record.reason.contains("no step for 10 min 0 s"), "{}", record.reason);
}

#[test]
fn a_signal_is_in_the_history_once() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    let sent = |signal| {
        let attempt = JobId::new(1).attempt(1);
        Event::Report(key(1, 1), Report::SignalSent { attempt, signal })
    };
    for signal in [Signal::TERM, Signal::KILL, Signal::KILL] {
        test.event(sent(signal));
    }
    assert_eq!(events(&test, |kind| matches!(kind, JobEventKind::SignalSent { .. })), 2);
    test.ended(rank(1, 1), Outcome::Signalled(Signal::KILL), Some(StopReason::Cancelled));
    test.event(sent(Signal::HUP));
    assert_eq!(events(&test, |kind| matches!(kind, JobEventKind::SignalSent { .. })), 2, "{id} has ended");
}
