//! Nodes whose worker is not root and serves one account alone.

use cohabit_types::{
    Enforcement, Inventory, Isolation, JobEventKind, JobId, JobState, Outcome, Principal, ReasonCode, Reply,
    Request, RetryPolicy, Role, Span, StartFailure, Submit, UserIsolation,
};

use super::kit::*;
use crate::{Event, Head};

/// What this node says when it joins.
fn serving(number: u64, users: UserIsolation) -> Inventory {
    let isolation = Isolation { users, host_limits: Enforcement::Enforced, devices: Enforcement::Enforced };
    Inventory { isolation, ..inventory(number, 1, vec![]) }
}

fn only(account: &str) -> UserIsolation {
    UserIsolation::OneAccount(account.to_owned())
}

fn join(test: &mut TestHead, number: u64, incarnation: u64, users: UserIsolation) {
    test.event(Event::Joined(key(number, incarnation), serving(number, users)));
    test.planned();
}

/// A job for one GPU, submitted by this user.
fn submit_as(test: &mut TestHead, user: &str) -> JobId {
    let by = Principal::new(user, Role::User);
    let submit = Submit { spec: gpus(1), idempotency_key: None, estimate: None };
    match test.request(by, Request::Submit(Box::new(submit))) {
        Reply::Accepted { job, .. } => job,
        other => panic!("not accepted: {other:?}"),
    }
}

fn node_of(test: &TestHead, job: JobId) -> String {
    test.record(job).attempts[0].ranks[0].node.clone()
}

#[test]
fn a_job_of_another_account_waits_and_is_told_which_node_serves_whom() {
    let mut test = TestHead::new();
    join(&mut test, 1, 1, only("ada"));
    let (beas, adas) = (submit_as(&mut test, "bea"), submit_as(&mut test, "ada"));
    assert_eq!((test.state(beas), test.state(adas)), (JobState::Pending, JobState::Running));
    let record = test.record(beas);
    assert_eq!(record.reason_code, ReasonCode::WaitingForNodes);
    assert_eq!(record.reason, "no connected worker accepts jobs of the account 'bea'");
    let sentences = test.reader().sentences(beas).unwrap().join(" ");
    let why = "Node node1 serves only the account 'ada', because its worker is not root; start the worker as root or \
               with --allow-shared-account.";
    assert!(sentences.contains(why), "{sentences}");
    let dropped = |event: &cohabit_types::JobEvent| matches!(event.kind, JobEventKind::PlanDropped(_));
    assert!(!test.head.job_history(beas).iter().any(dropped), "no policy tried to place it there");
}

#[test]
fn a_job_goes_past_a_node_of_another_account_to_one_that_serves_all() {
    let mut test = TestHead::new();
    join(&mut test, 1, 1, only("ada"));
    join(&mut test, 2, 1, UserIsolation::Apart);
    let beas = submit_as(&mut test, "bea");
    assert_eq!(node_of(&test, beas), "node2");
    let adas = submit_as(&mut test, "ada");
    assert_eq!(node_of(&test, adas), "node1");
}

#[test]
fn a_worker_that_comes_back_for_all_users_takes_the_jobs_that_waited() {
    let mut test = TestHead::new();
    join(&mut test, 1, 1, only("ada"));
    let beas = submit_as(&mut test, "bea");
    assert_eq!(test.state(beas), JobState::Pending);
    join(&mut test, 1, 2, UserIsolation::Together);
    assert_eq!(test.state(beas), JobState::Running);
}

#[test]
fn a_job_that_waits_is_shown_anew_when_the_first_node_of_its_account_joins() {
    let mut test = TestHead::new();
    join(&mut test, 1, 1, only("ada"));
    let beas = submit_as(&mut test, "bea");
    join(&mut test, 2, 1, only("bea"));
    assert_eq!(node_of(&test, beas), "node2");
}

#[test]
fn an_account_keeps_its_other_nodes_when_its_first_one_serves_another() {
    let mut test = TestHead::new();
    join(&mut test, 1, 1, only("ada"));
    join(&mut test, 2, 1, only("ada"));
    join(&mut test, 1, 2, only("bea"));
    let adas = submit_as(&mut test, "ada");
    assert_eq!(node_of(&test, adas), "node2");
    let beas = submit_as(&mut test, "bea");
    assert_eq!(node_of(&test, beas), "node1");
}

#[test]
fn a_head_from_a_snapshot_knows_the_owners_of_nodes() {
    let mut test = TestHead::new();
    join(&mut test, 1, 1, only("ada"));
    submit_as(&mut test, "bea");
    let (rest, parts) = test.head.split_for_snapshot(10);
    let again = Head::from_snapshot(rest, parts.collect()).unwrap();
    assert_eq!(again.view(test.now), test.head.view(test.now));
    assert!(again.view(test.now).nodes[0].owner.is_some());
}

/// The second line of defence: the worker refuses what an earlier head may send.
#[test]
fn a_refusal_by_the_worker_uses_no_retry_and_the_node_does_not_get_the_job_again_at_once() {
    let mut test = TestHead::with_devices(1);
    let retry = RetryPolicy { limit: 0, backoff: Span::ZERO, backoff_cap: Span::ZERO };
    let id = test.submit(cohabit_types::JobSpec { retry, ..gpus(1) });
    test.runs();
    let why = "this worker is not root and serves only the account 'bea'".to_owned();
    let refused = Outcome::NotStarted(StartFailure::NodeProblem(why.clone()));
    test.ended(rank(1, 1), refused, None);
    assert_eq!(test.state(id), JobState::Pending);
    assert!(test.runs().is_empty(), "its node is paused");
    assert!(test.record(id).reason.contains(&why), "{}", test.record(id).reason);
}
