//! Arrays: members, limits, and the array as a whole.

use std::sync::Arc;

use cohabit_policy::ViewChange;
use cohabit_types::{
    ChangeResult, ClientRequestId, Dependency, DependencyKind, Filter, JobChange, JobId, JobSpec, JobState,
    Outcome, ReasonCode, Request, Submit,
};

use super::kit::*;
use crate::job::Job;
use crate::{Event, Head};

fn member(index: u32) -> cohabit_types::RankId {
    JobId::member(1, index).attempt(1).rank(0)
}

#[test]
fn members_run_up_to_the_limit_and_the_array_ends_with_the_last() {
    let mut test = TestHead::with_devices(4);
    let array = test.submit(array(0, 4, Some(2)));
    assert_eq!(test.runs().len(), 2);
    assert_eq!(test.record(JobId::member(1, 4)).reason_code, ReasonCode::WaitingForArrayLimit);
    for index in 0..5 {
        assert_eq!(test.state(array), JobState::Running);
        test.ended(member(index), Outcome::Exited(0), None);
    }
    let ended: Vec<JobId> = test.ends().into_iter().map(|record| record.id).collect();
    assert_eq!(ended.last(), Some(&array), "the array as a whole is told last");
    assert_eq!(test.state(array), JobState::Completed);
    assert_eq!(test.record(array).array.unwrap().ended(), 5);
}

#[test]
fn the_worst_member_speaks_for_the_array() {
    let mut test = TestHead::with_devices(4);
    let array = test.submit(array(0, 1, None));
    test.ended(member(0), Outcome::Exited(0), None);
    test.ended(member(1), Outcome::Exited(5), None);
    let record = test.record(array);
    assert_eq!((record.state, record.exit_code, record.shell_code()), (JobState::Failed, Some(5), Some(5)));
    assert!(record.reason.contains("1 COMPLETED, 1 FAILED"), "{}", record.reason);
}

#[test]
fn a_change_of_the_array_reaches_every_member() {
    let mut test = TestHead::with_devices(1);
    let array = test.submit(array(0, 9, None));
    assert_eq!(test.change(JobChange::Cancel, array), ChangeResult::Done);
    assert_eq!(test.state(JobId::member(1, 0)), JobState::Completing);
    assert_eq!(test.state(JobId::member(1, 9)), JobState::Cancelled);
    assert_eq!(test.change(JobChange::Cancel, JobId::member(1, 9)), ChangeResult::Already);
}

#[test]
fn a_job_may_depend_on_a_member_or_on_the_whole_array() {
    let mut test = TestHead::with_devices(4);
    let array = test.submit(array(0, 1, None));
    let after =
        |job| JobSpec { depends_on: vec![Dependency { job, when: DependencyKind::AfterOk }], ..gpus(1) };
    let (one, all) = (test.submit(after(JobId::member(1, 0))), test.submit(after(array)));
    test.ended(member(0), Outcome::Exited(0), None);
    assert_eq!((test.state(one), test.state(all)), (JobState::Running, JobState::Pending));
    test.ended(member(1), Outcome::Exited(0), None);
    assert_eq!(test.state(all), JobState::Running);
}

#[test]
fn a_large_array_shows_the_policy_only_what_could_start() {
    let mut test = TestHead::with_devices(4);
    test.submit(array(0, 9_999, None));
    assert_eq!(test.runs().len(), 4);
    assert_eq!(test.head.view(test.now).pending.len(), 4);
    let page = |after| {
        let filter = Filter { members_of: Some(1), limit: 600, after, ..Filter::default() };
        test.head.list(test.now, &filter)
    };
    let first = page(None);
    assert_eq!((first.jobs.len(), first.more), (600, true));
    assert_eq!(page(Some(first.jobs[599].id)).jobs[0].id, JobId::member(1, 600));
    assert!(!page(Some(JobId::member(1, 9_500))).more);
}

#[test]
fn members_that_claim_nothing_all_start() {
    let mut test = TestHead::with_devices(1);
    let claimless = JobSpec { demand: gpus(0).demand, ..array(1, 2_500, None) };
    test.submit(claimless);
    assert_eq!(test.runs().len(), 2_500);
}

#[test]
fn a_large_array_that_ends_at_once_is_told_once() {
    let mut test = TestHead::with_devices(1);
    let held = JobSpec { held: true, ..array(1, 20_000, None) };
    let array = test.submit(held);
    test.effects();
    assert_eq!(test.change(JobChange::Cancel, array), ChangeResult::Done);
    let ends: Vec<JobId> = test.ends().into_iter().map(|record| record.id).collect();
    assert_eq!(ends.iter().filter(|id| **id == array).count(), 1);
    assert_eq!((ends.len(), ends.last()), (20_001, Some(&array)));
}

#[test]
fn members_that_wait_alike_are_one_in_memory_and_a_run_in_a_snapshot() {
    let mut test = TestHead::with_devices(1);
    test.submit(array(0, 999, None));
    let shared = |head: &Head| {
        let waiting: Vec<&Arc<Job>> = head.jobs.range(JobId::member(1, 1)..).map(|(_, job)| job).collect();
        waiting.len() == 999 && waiting.iter().all(|job| Arc::ptr_eq(job, waiting[0]))
    };
    assert!(shared(&test.head));
    let snapshot = serde_json::to_string(&test.head).unwrap();
    assert!(snapshot.contains("\"1.2\":null,\"1.3\":null"), "{snapshot}");
    let again: Head = serde_json::from_str(&snapshot).unwrap();
    again.check();
    assert!(shared(&again));
    assert_eq!(serde_json::to_string(&again).unwrap(), snapshot);
}

#[test]
fn a_run_in_a_snapshot_has_a_beginning() {
    let mut test = TestHead::with_devices(1);
    test.submit(array(0, 1, None));
    let snapshot = serde_json::to_value(&test.head).unwrap();
    let mut broken = snapshot.clone();
    broken["jobs"]["1.0"] = serde_json::Value::Null;
    assert!(serde_json::from_value::<Head>(snapshot).is_ok());
    assert!(serde_json::from_value::<Head>(broken).unwrap_err().to_string().contains("before the first"));
}

#[test]
fn a_policy_hears_only_of_the_members_that_could_start() {
    let mut test = TestHead::new();
    test.join(1, 2);
    test.head.changes();
    let submit = Submit { spec: array(0, 999, None), idempotency_key: None, estimate: None };
    test.event(Event::Client(ClientRequestId(1), ada(), Request::Submit(Box::new(submit))));
    let changes = test.head.changes();
    assert!(changes.iter().all(|it| matches!(it, ViewChange::Pending(_))), "{changes:?}");
    assert_eq!(changes.len(), 2);
}

#[test]
fn a_place_in_line_goes_by_priority_then_time_then_index() {
    let mut test = TestHead::new();
    let first = test.submit(array(0, 9, None));
    let urgent = test.submit(JobSpec { priority: 5, ..gpus(1) });
    let ahead = |test: &TestHead, id| test.head.ahead_of(id);
    assert_eq!(ahead(&test, JobId::member(first.number, 7)), 8);
    assert_eq!(ahead(&test, urgent), 0);
    test.change(JobChange::Hold, urgent);
    assert_eq!(ahead(&test, JobId::member(first.number, 7)), 7);
}
