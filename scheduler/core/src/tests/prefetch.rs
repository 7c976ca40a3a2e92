//! Members of an array that are ordered in advance.

use cohabit_types::{
    Array, ChangeResult, DrainRequest, HeldRank, HeldRankPhase, IndexRange, Inventory, JobChange, JobId,
    JobSpec, JobState, Order, Outcome, RankId, ReasonCode, Request, RunOrder, Span, StartFailure, StopReason,
};

use super::kit::*;
use crate::{Config, Event};

fn member(index: u32) -> RankId {
    JobId::member(1, index).attempt(1).rank(0)
}

fn prefetching(devices: u32, held_ranks: Vec<HeldRank>) -> Inventory {
    Inventory { prefetches: true, ..inventory(1, devices, held_ranks) }
}

/// A worker with one device, on which member 0 of an array of fifteen runs.
fn running() -> TestHead {
    let mut test = TestHead::new();
    test.event(Event::Joined(key(1, 1), prefetching(1, vec![])));
    test.planned();
    test.submit(JobSpec { demand: gpus(1).demand, ..array(0, 14, None) });
    test.orders();
    test
}

/// The same when member 0 has ended after 15 ms: member 1 runs, and members 2 to 5 follow.
fn followed() -> TestHead {
    let mut test = running();
    test.after(Span::from_millis(15));
    succeed(&mut test, 0);
    test
}

fn succeed(test: &mut TestHead, index: u32) {
    test.ended(member(index), Outcome::Exited(0), None);
}

fn give_back(test: &mut TestHead, index: u32) {
    let never = Outcome::NotStarted(StartFailure::Other("never".into()));
    test.ended(member(index), never, Some(StopReason::Superseded));
}

/// What was ordered since the last look: which member follows which.
fn followers(test: &mut TestHead) -> Vec<(u32, Option<u32>)> {
    let index = |id: JobId| id.index.unwrap();
    let pair = |run: RunOrder| (index(run.attempt.job), run.after.map(|after| index(after.attempt.job)));
    test.runs().into_iter().map(pair).collect()
}

fn withdrawn(test: &mut TestHead) -> Vec<u32> {
    let index = |(_, order)| if let Order::Withdraw(it) = order { it.job.index } else { None };
    test.orders().into_iter().filter_map(index).collect()
}

fn state(test: &TestHead, index: u32) -> JobState {
    test.state(JobId::member(1, index))
}

fn change(test: &mut TestHead, change: JobChange, index: u32) -> ChangeResult {
    test.change(change, JobId::member(1, index))
}

#[test]
fn short_members_are_ordered_in_advance_and_begin_without_an_order() {
    let mut test = followed();
    assert_eq!(followers(&mut test), [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(3)), (5, Some(4))]);
    assert_eq!([1, 2].map(|index| state(&test, index)), [JobState::Running, JobState::Pending]);
    let record = test.record(JobId::member(1, 2));
    assert_eq!((record.reason_code, record.attempts.len()), (ReasonCode::WaitingForTurn, 0));
    assert_eq!(record.reason, "it is next on node1, when job 1.1 has ended there");
    test.after(Span::from_millis(15));
    succeed(&mut test, 1);
    assert_eq!(followers(&mut test), [(6, Some(5))], "only the end of the line is ordered anew");
    assert_eq!(state(&test, 2), JobState::Running);
    let record = test.record(JobId::member(1, 2));
    assert_eq!(record.attempts[0].started_at, test.now);
    for index in 2..15 {
        succeed(&mut test, index);
    }
    assert_eq!(test.state(JobId::new(1)), JobState::Completed);
}

#[test]
fn the_longer_they_last_the_fewer_are_ordered_in_advance() {
    for (lasted, expected) in [(5, 8), (10, 6), (20, 3), (30, 2), (60, 1), (70, 0)] {
        let mut test = running();
        test.after(Span::from_millis(lasted));
        succeed(&mut test, 0);
        assert_eq!(followers(&mut test).len(), expected + 1, "after {lasted} ms");
    }
}

#[test]
fn nothing_is_ordered_in_advance_where_it_could_be_wrong() {
    let ended = |mut test: TestHead| {
        test.after(Span::from_millis(15));
        test.runs();
        succeed(&mut test, 0);
        followers(&mut test).into_iter().filter(|(_, after)| after.is_some()).count()
    };
    assert_eq!(ended(running()), 4);
    let mut test = running();
    test.submit(gpus(1));
    assert_eq!(ended(test), 0, "another job waits");
    let mut test = running();
    test.request(root(), Request::Drain(DrainRequest::new("node1")));
    assert_eq!(ended(test), 0, "the node is drained");
    let mut test = TestHead::with_devices(1);
    test.submit(JobSpec { demand: gpus(1).demand, ..array(0, 14, None) });
    assert_eq!(ended(test), 0, "the worker cannot do it");
}

#[test]
fn a_member_that_is_given_back_waits_as_before_and_the_next_one_follows() {
    let mut test = followed();
    test.runs();
    give_back(&mut test, 2);
    let reason = |index| test.record(JobId::member(1, index)).reason_code;
    assert_eq!((reason(2), reason(3)), (ReasonCode::WaitingForDevices, ReasonCode::WaitingForTurn));
    succeed(&mut test, 1);
    assert_eq!([2, 3].map(|index| state(&test, index)), [JobState::Pending, JobState::Running]);
    for index in [3, 4, 5] {
        succeed(&mut test, index);
    }
    assert_eq!(state(&test, 2), JobState::Running, "its first attempt, like any other");
    succeed(&mut test, 2);
    assert_eq!(state(&test, 2), JobState::Completed);
}

#[test]
fn a_cancelled_member_ends_when_its_worker_has_given_it_back() {
    let mut test = followed();
    test.orders();
    assert_eq!(change(&mut test, JobChange::Cancel, 3), ChangeResult::Done);
    assert!(withdrawn(&mut test).contains(&3));
    assert_eq!(state(&test, 3), JobState::Pending);
    assert!(test.record(JobId::member(1, 3)).reason.contains("node1 is told not to start it"));
    assert_eq!(change(&mut test, JobChange::Cancel, 3), ChangeResult::Already);
    give_back(&mut test, 3);
    let record = test.record(JobId::member(1, 3));
    assert_eq!((record.state, record.reason_code), (JobState::Cancelled, ReasonCode::CancelledByUser));
    succeed(&mut test, 1);
    succeed(&mut test, 2);
    assert_eq!(state(&test, 4), JobState::Running, "the next one is in its place");
}

#[test]
fn a_cancelled_member_that_had_begun_is_stopped() {
    let mut test = followed();
    change(&mut test, JobChange::Cancel, 2);
    test.orders();
    succeed(&mut test, 1);
    assert_eq!(state(&test, 2), JobState::Completing);
    let stops = |(_, order)| matches!(order, Order::Stop { attempt, .. } if attempt == member(2).attempt);
    assert!(test.orders().into_iter().any(stops));
    test.ended(member(2), Outcome::Exited(143), Some(StopReason::Cancelled));
    assert_eq!(state(&test, 2), JobState::Cancelled);
}

#[test]
fn one_that_may_begin_at_any_moment_cannot_be_held() {
    let mut test = followed();
    let ChangeResult::Refused(refusal) = change(&mut test, JobChange::Hold, 2) else { panic!("not refused") };
    assert!(refusal.to_string().contains("about to begin"), "{refusal}");
    assert_eq!(change(&mut test, JobChange::Hold, 9), ChangeResult::Done);
    assert_eq!(test.change(JobChange::Hold, JobId::new(1)), ChangeResult::Done, "the others are");
    assert_eq!([2, 8].map(|index| state(&test, index)), [JobState::Pending, JobState::Held]);
}

#[test]
fn what_a_user_asks_for_withdraws_everything() {
    let mut test = followed();
    test.orders();
    test.submit(gpus(1));
    assert_eq!(withdrawn(&mut test), [2, 3, 4, 5]);
}

#[test]
fn what_follows_an_attempt_that_is_stopped_is_withdrawn_before() {
    let mut test = followed();
    test.orders();
    change(&mut test, JobChange::Requeue, 1);
    let orders = test.orders();
    let place = |wanted: &Order| orders.iter().position(|(_, order)| order == wanted).unwrap();
    let stop = Order::Stop { attempt: member(1).attempt, why: StopReason::Requeued };
    for index in 2..=5 {
        assert!(place(&Order::Withdraw(member(index).attempt)) < place(&stop));
    }
}

#[test]
fn a_worker_that_joins_again_says_what_has_begun() {
    let held = |index, phase| HeldRank { rank: member(index), phase };
    let mut test = followed();
    test.lose(1, 1);
    let held_ranks = vec![held(1, HeldRankPhase::Ended), held(2, HeldRankPhase::Running(test.now))];
    test.event(Event::Joined(key(1, 2), prefetching(1, held_ranks)));
    test.planned();
    assert!(test.orders().iter().all(|(_, order)| !matches!(order, Order::Stop { .. })));
    assert_eq!(
        [1, 2, 3].map(|index| state(&test, index)),
        [JobState::Running, JobState::Pending, JobState::Pending]
    );
    assert!(test.record(JobId::member(1, 2)).reason.contains("next on node1"));
    assert!(!test.record(JobId::member(1, 3)).reason.contains("next on node1"), "it is gone there");
    test.ended_on(key(1, 2), member(1), Outcome::Exited(0), None);
    assert_eq!(state(&test, 2), JobState::Running);
    test.ended_on(key(1, 2), member(2), Outcome::Exited(0), None);
    assert_eq!(state(&test, 3), JobState::Running);
}

#[test]
fn a_worker_that_has_lost_everything_leaves_nothing_behind() {
    let mut test = followed();
    test.lose(1, 1);
    test.event(Event::Joined(key(1, 2), prefetching(1, vec![])));
    test.planned();
    assert!(test.head.volatile.followers.is_empty());
    assert_eq!([1, 2].map(|index| state(&test, index)), [JobState::Running, JobState::Pending]);
}

#[test]
fn what_may_have_begun_on_a_lost_node_is_given_up_with_it() {
    let mut test = followed();
    change(&mut test, JobChange::Cancel, 4);
    test.lose(1, 1);
    test.after(Span::from_secs(120));
    assert!(test.head.volatile.followers.is_empty());
    assert_eq!([2, 4].map(|index| state(&test, index)), [JobState::Pending, JobState::Cancelled]);
    assert_eq!(test.record(JobId::member(1, 2)).attempts.len(), 1);
}

#[test]
fn a_restored_backup_forgets_what_was_ordered_in_advance() {
    let mut test = followed();
    test.event(Event::BackupRestored { last_number: 100, attempt_gap: 10 });
    assert!(test.head.volatile.followers.is_empty());
}

/// Users have a limit unless an operator takes it away, and each member runs instead of the one before.
#[test]
fn the_limit_of_a_user_holds_and_hinders_nothing() {
    let mut test = TestHead::new();
    test.event(Event::HeadStarted(Config { max_running_jobs: Some(1), ..Config::default() }));
    test.event(Event::Joined(key(1, 1), prefetching(2, vec![])));
    test.planned();
    test.submit(JobSpec { demand: gpus(1).demand, ..array(0, 14, None) });
    test.orders();
    test.after(Span::from_millis(15));
    succeed(&mut test, 0);
    assert_eq!(followers(&mut test), [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(3)), (5, Some(4))]);
    succeed(&mut test, 1);
    assert_eq!(state(&test, 2), JobState::Running);
}

#[test]
fn an_array_with_gaps_is_ordered_by_its_indices() {
    let mut test = TestHead::new();
    test.event(Event::Joined(key(1, 1), prefetching(1, vec![])));
    test.planned();
    let ranges = vec![IndexRange { first: 0, last: 40, step: 20 }];
    let array = Some(Array { ranges, at_once: Some(1) });
    test.submit(JobSpec { array, demand: gpus(1).demand, ..command() });
    test.runs();
    succeed(&mut test, 0);
    assert_eq!(followers(&mut test), [(20, None), (40, Some(20))]);
}
