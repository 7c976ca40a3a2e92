//! Recovery is replay: the same events make the same head, from the start or from a snapshot.

use cohabit_types::{ClientRequestId, JobState, Outcome, Request, Span, Submit};

use super::kit::*;
use crate::{Config, Event, Head, SnapshotPart};

fn eventful() -> TestHead {
    let mut test = TestHead::with_devices(2);
    test.submit(array(0, 5, Some(2)));
    test.submit(part(300));
    test.ended(cohabit_types::JobId::member(1, 0).attempt(1).rank(0), Outcome::Exited(1), None);
    test.after(Span::from_secs(5));
    test.lose(1, 1);
    test.after(Span::from_secs(70));
    test
}

#[test]
fn replay_makes_the_same_head() {
    let test = eventful();
    let mut replayed = Head::new();
    for (at, event) in &test.events {
        replayed.handle(*at, event.clone(), &mut Vec::new());
    }
    assert_eq!(replayed, test.head);
}

#[test]
fn a_head_restored_from_parts_equals_the_original() {
    let mut test = eventful();
    let keyed = |key: &str| Submit { spec: gpus(1), idempotency_key: Some(key.into()), estimate: None };
    for key in ["a", "b"] {
        test.event(Event::Client(ClientRequestId(9), ada(), Request::Submit(Box::new(keyed(key)))));
    }
    for size in [1, 3, 1_000] {
        let (rest, parts) = test.head.split_for_snapshot(size);
        let parts: Vec<SnapshotPart> = parts.collect();
        assert_eq!(parts.len(), test.head.job_count().div_ceil(size));
        let again = Head::from_snapshot(rest, parts).unwrap();
        again.check().unwrap();
        assert_eq!(again, test.head);
    }
}

#[test]
fn a_head_without_jobs_has_no_parts() {
    let test = TestHead::with_devices(1);
    let (rest, parts) = test.head.split_for_snapshot(10);
    assert_eq!(parts.count(), 0);
    let again = Head::from_snapshot(rest, vec![]).unwrap();
    assert_eq!(again, test.head);
}

#[test]
fn a_restarted_head_waits_for_its_workers_before_it_gives_up_their_jobs() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    test.event(Event::HeadStarted(Config { lost_after: Span::from_secs(60), ..Config::default() }));
    test.after(Span::from_secs(59));
    assert_eq!(test.state(id), JobState::Running);
    test.after(Span::from_secs(1));
    assert_eq!(test.state(id), JobState::Pending);
}

#[test]
fn a_plan_for_an_older_request_is_dropped() {
    let mut test = TestHead::new();
    test.submit(gpus(1));
    let plan = cohabit_policy::Plan::default();
    let before = test.head.clone();
    test.event(Event::Planned(cohabit_types::PlanRequestId(999), plan));
    assert_eq!(test.head, before);
}
