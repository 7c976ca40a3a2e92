//! Arrays: members, limits, and the array as a whole.

use std::sync::Arc;

use cohabit_policy::ViewChange;
use cohabit_types::{
    ChangeResult, ClientRequestId, Dependency, DependencyKind, Filter, JobChange, JobId, JobSpec, JobState,
    Outcome, ReasonCode, Request, Submit,
};

use super::kit::*;
use crate::job::Job;
use crate::{Event, Head, SnapshotPart};

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
fn the_worst_member_represents_the_array() {
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
        test.head.at(test.now).list(&filter)
    };
    let first = page(None);
    assert_eq!((first.jobs.len(), first.continue_after), (600, first.jobs.last().map(|it| it.id)));
    assert_eq!(page(Some(first.jobs[599].id)).jobs[0].id, JobId::member(1, 600));
    assert_eq!(page(Some(JobId::member(1, 9_500))).continue_after, None);
}

#[test]
fn members_that_claim_nothing_all_start() {
    let mut test = TestHead::with_devices(1);
    let claimless = JobSpec { demand: gpus(0).demand, ..array(1, 2_500, None) };
    test.submit(claimless);
    assert_eq!(test.runs().len(), 2_500);
}

#[test]
fn a_large_array_that_ends_at_once_is_published_once() {
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
fn waiting_members_share_memory_and_are_written_once_in_a_snapshot() {
    let mut test = TestHead::with_devices(1);
    test.submit(array(0, 999, None));
    let shared = |head: &Head| {
        let waiting: Vec<&Arc<Job>> = head.jobs.range(JobId::member(1, 1)..).map(|(_, job)| job).collect();
        waiting.len() == 999 && waiting.iter().all(|job| Arc::ptr_eq(job, waiting[0]))
    };
    assert!(shared(&test.head));
    let (rest, parts) = test.head.split_for_snapshot(100);
    let parts: Vec<SnapshotPart> = parts.collect();
    let is_written = |job: &Option<Arc<Job>>| job.is_some();
    let written = parts.iter().flat_map(|part| &part.jobs).filter(|(_, job)| is_written(job)).count();
    assert_eq!(written, 2, "the member that runs, and one for all that wait");
    let again = Head::from_snapshot(rest, parts).unwrap();
    again.check().unwrap();
    assert!(shared(&again));
    assert_eq!(again, test.head);
}

#[test]
fn a_snapshot_whose_first_job_is_missing_is_refused() {
    let mut test = TestHead::with_devices(1);
    test.submit(array(0, 1, None));
    let (rest, parts) = test.head.split_for_snapshot(10);
    let mut parts: Vec<SnapshotPart> = parts.collect();
    parts[0].jobs[0].1 = None;
    let refusal = Head::from_snapshot(rest, parts).unwrap_err().to_string();
    assert!(refusal.contains("job 1.0") && refusal.contains("before the first"), "{refusal}");
}

#[test]
fn a_policy_sees_only_the_members_that_could_start() {
    let mut test = TestHead::new();
    test.join(1, 2);
    test.tracker.changes(&test.head, test.now);
    let submit = Submit { spec: array(0, 999, None), idempotency_key: None, estimate: None };
    test.event(Event::Client(ClientRequestId(1), ada(), Request::Submit(Box::new(submit))));
    let changes = test.tracker.changes(&test.head, test.now);
    assert!(changes.iter().all(|it| matches!(it, ViewChange::Pending(_))), "{changes:?}");
    assert_eq!(changes.len(), 2);
}

#[test]
fn the_queue_is_ordered_by_priority_then_time_then_index() {
    let mut test = TestHead::new();
    let first = test.submit(array(0, 9, None));
    let urgent = test.submit(JobSpec { priority: 5, ..gpus(1) });
    let ahead = |test: &TestHead, id| test.head.ahead_of(id);
    assert_eq!(ahead(&test, JobId::member(first.number, 7)), 8);
    assert_eq!(ahead(&test, urgent), 0);
    test.change(JobChange::Hold, urgent);
    assert_eq!(ahead(&test, JobId::member(first.number, 7)), 7);
}

/// A thousand dependencies of a hundred thousand members: what each member kept of them took gigabytes.
#[test]
fn the_dependencies_of_an_array_are_kept_once() {
    let mut test = TestHead::with_devices(1);
    test.submit(JobSpec { held: true, ..array(0, 999, None) });
    let after = |index| Dependency { job: JobId::member(1, index), when: DependencyKind::AfterAny };
    let depends_on = (1..1_000).map(after).collect();
    let dependent = test.submit(JobSpec { depends_on, ..array(0, 99_999, None) });
    let (rest, parts) = test.head.split_for_snapshot(1_000_000);
    let kept: usize = rest.dependents.values().map(|dependents| dependents.len()).sum();
    assert_eq!(kept, 999);
    let stored: Vec<_> = parts.flat_map(|part| part.jobs).filter(|(_, job)| job.is_some()).collect();
    assert_eq!(stored.len(), 2, "the members of an array share one job");
    let reason = test.record(JobId::member(dependent.number, 7)).reason;
    assert!(reason.contains("1.1, 1.2") && reason.ends_with("and 989 others to end"), "{reason}");
    test.change(JobChange::Cancel, JobId::new(1));
    assert_eq!(test.runs().len(), 1, "the first member runs on the one device");
    assert_eq!(test.record(JobId::member(dependent.number, 7)).reason_code, ReasonCode::WaitingForTurn);
}

#[test]
fn a_held_array_says_that_it_is_held() {
    let mut test = TestHead::with_devices(1);
    let array = test.submit(JobSpec { held: true, ..array(1, 3, None) });
    let record = test.record(array);
    assert_eq!((record.state, record.reason_code), (JobState::Held, ReasonCode::HeldByUser));
    let held = "0 of 3 members have ended: 3 HELD; 3 members are on hold, to run once released";
    assert_eq!(record.reason, held);
    test.change(JobChange::Release, JobId::member(array.number, 2));
    let record = test.record(array);
    assert_eq!((record.state, record.reason_code), (JobState::Running, ReasonCode::WaitingForTurn));
    assert!(record.reason.ends_with("; 2 members are on hold, to run once released"), "{}", record.reason);
    test.ended(JobId::member(array.number, 2).attempt(1).rank(0), Outcome::Exited(0), None);
    assert_eq!(test.record(array).reason_code, ReasonCode::HeldByUser);
}
