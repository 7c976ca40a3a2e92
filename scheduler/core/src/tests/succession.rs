//! The next member of an array takes the place of a short one without a plan, unless a plan might decide
//! anything else.

use cohabit_types::{
    Demand, Dependency, DependencyKind, DrainRequest, GpuRequest, JobChange, JobId, JobSpec, JobState,
    Outcome, Request, Span, StopReason,
};

use super::kit::*;
use crate::{Config, Event};

fn member(index: u32) -> cohabit_types::RankId {
    JobId::member(1, index).attempt(1).rank(0)
}

/// An array of ten on two devices: members 0 and 1 run.
fn running() -> TestHead {
    let mut test = TestHead::with_devices(2);
    test.submit(of_one_device(array(0, 9, None)));
    assert_eq!(test.runs().len(), 2);
    test
}

fn of_one_device(spec: JobSpec) -> JobSpec {
    JobSpec { demand: Demand { gpus: GpuRequest::Whole(1), ..Demand::default() }, ..spec }
}

/// The member that the end of this one starts, and whether a plan was asked for.
fn after_end(
    test: &mut TestHead,
    index: u32,
    outcome: Outcome,
    stopped: Option<StopReason>,
) -> (Option<u32>, bool) {
    let before = test.head.last_request;
    test.ended(member(index), outcome, stopped);
    let next = test.runs().first().and_then(|run| run.attempt.job.index);
    (next, test.head.last_request > before)
}

#[test]
fn the_next_member_takes_the_place_without_a_plan() {
    let mut test = running();
    let place = test.record(JobId::member(1, 1)).attempts[0].ranks[0].devices.clone();
    assert_eq!(after_end(&mut test, 1, Outcome::Exited(0), None), (Some(2), false));
    let record = test.record(JobId::member(1, 2));
    assert_eq!((record.state, &record.attempts[0].ranks[0].devices), (JobState::Running, &place));
    let history = test.reader().explain(JobId::member(1, 2)).unwrap();
    let says = |text: &str| format!("{history:?}").contains(text);
    assert!(says("takes the place of 1.1: only members of its array wait"), "{history:?}");
    for index in [0, 2, 3, 4, 5, 6, 7] {
        assert!(!after_end(&mut test, index, Outcome::Exited(0), None).1, "{index}");
    }
    assert_eq!(test.state(JobId::member(1, 9)), JobState::Running);
    assert_eq!(after_end(&mut test, 8, Outcome::Exited(0), None), (None, false), "nothing waits");
}

#[test]
fn a_plan_decides_where_other_jobs_wait() {
    let mut test = running();
    test.submit(of_one_device(command()));
    assert_eq!(after_end(&mut test, 0, Outcome::Exited(0), None), (Some(2), true));
}

#[test]
fn a_plan_decides_where_the_end_lets_another_job_begin() {
    let mut test = running();
    let after = Dependency { job: JobId::member(1, 0), when: DependencyKind::AfterAny };
    test.submit(JobSpec { depends_on: vec![after], priority: 5, ..of_one_device(command()) });
    test.runs();
    test.ended(member(0), Outcome::Exited(0), None);
    assert_eq!(test.state(JobId::new(2)), JobState::Running);
    assert_eq!(test.state(JobId::member(1, 2)), JobState::Pending);
}

#[test]
fn a_plan_decides_after_a_failure_a_stop_and_a_long_attempt() {
    for (outcome, stopped) in [
        (Outcome::Exited(1), None),
        (Outcome::Lost("its executor was killed".into()), None),
        (Outcome::Exited(0), Some(StopReason::TimeLimit)),
    ] {
        let mut test = running();
        let (_, planned) = after_end(&mut test, 0, outcome.clone(), stopped);
        assert!(planned, "{outcome:?}");
    }
    let mut test = running();
    test.change(JobChange::Requeue, JobId::member(1, 0));
    assert!(after_end(&mut test, 0, Outcome::Exited(0), None).1);
    let mut test = running();
    test.after(Span::from_secs(11));
    assert_eq!(after_end(&mut test, 0, Outcome::Exited(0), None), (Some(2), true));
}

#[test]
fn a_plan_decides_where_others_share_the_device() {
    let mut test = TestHead::with_devices(1);
    test.submit(JobSpec { demand: part(500).demand, ..array(0, 9, None) });
    assert_eq!(test.runs().len(), 2);
    assert!(after_end(&mut test, 0, Outcome::Exited(0), None).1);
}

#[test]
fn the_limit_of_the_array_holds() {
    let mut test = TestHead::with_devices(4);
    test.submit(of_one_device(array(0, 9, Some(2))));
    assert_eq!(test.runs().len(), 2);
    assert_eq!(after_end(&mut test, 0, Outcome::Exited(0), None), (Some(2), false));
    assert_eq!(after_end(&mut test, 1, Outcome::Exited(0), None), (Some(3), false));
}

#[test]
fn a_drained_node_gets_no_member() {
    let mut test = running();
    test.request(root(), Request::Drain(DrainRequest::new("node1")));
    test.runs();
    let (next, _) = after_end(&mut test, 0, Outcome::Exited(0), None);
    assert_eq!(next, None);
}

/// Events of older journals say which plans were made: a replay must not decide anything by itself.
#[test]
fn a_head_of_an_older_journal_plans_each_start() {
    let mut test = TestHead::new();
    test.event(Event::HeadStarted(Config { succession: false, ..Config::default() }));
    test.join(1, 1);
    test.submit(of_one_device(array(0, 9, None)));
    test.runs();
    assert_eq!(after_end(&mut test, 0, Outcome::Exited(0), None), (Some(1), true));
}
