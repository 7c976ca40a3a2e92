//! Arrays: members, limits, and the array as a whole.

use cohabit_proto::{
    Dependency, Filter, JobChange, JobId, JobSpec, JobState, Outcome, Query, ReasonCode, Verdict, When,
};

use super::kit::*;

fn member(index: u32) -> cohabit_proto::RankId {
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
    assert_eq!(test.change(JobChange::Cancel, array), Verdict::Done);
    assert_eq!(test.state(JobId::member(1, 0)), JobState::Completing);
    assert_eq!(test.state(JobId::member(1, 9)), JobState::Cancelled);
    assert_eq!(test.change(JobChange::Cancel, JobId::member(1, 9)), Verdict::Already);
}

#[test]
fn a_job_may_depend_on_a_member_or_on_the_whole_array() {
    let mut test = TestHead::with_devices(4);
    let array = test.submit(array(0, 1, None));
    let after = |job| JobSpec { depends_on: vec![Dependency { job, when: When::AfterOk }], ..gpus(1) };
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
        match test.head.answer(test.now, &ada(), &Query::List(filter)) {
            cohabit_proto::Answer::Listed(page) => page,
            other => panic!("{other:?}"),
        }
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
    assert_eq!(test.change(JobChange::Cancel, array), Verdict::Done);
    let ends: Vec<JobId> = test.ends().into_iter().map(|record| record.id).collect();
    assert_eq!(ends.iter().filter(|id| **id == array).count(), 1);
    assert_eq!((ends.len(), ends.last()), (20_001, Some(&array)));
}
