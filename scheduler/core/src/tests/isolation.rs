//! The accounts that jobs run as, the limits on what they claim, and jobs that exceed them.

use cohabit_types::{
    Bytes, Demand, Enforcement, Inventory, Isolation, JobEventKind, JobSpec, JobState, Outcome, Principal,
    ReasonCode, Report, Request, RetryPolicy, Role, Span, Submit, UserIsolation,
};

use super::kit::*;
use crate::Event;

const MEMORY: Bytes = Bytes(2 << 30);

fn claiming() -> JobSpec {
    JobSpec { demand: Demand { cpus: 2, memory: MEMORY, ..command().demand }, ..command() }
}

/// A head with one node whose worker reports this enforcement of limits.
fn head_where(host_limits: Enforcement) -> TestHead {
    let mut test = TestHead::new();
    let isolation = Isolation { users: UserIsolation::Apart, host_limits, devices: Enforcement::Enforced };
    test.event(Event::Joined(key(1, 1), Inventory { isolation, ..inventory(1, 1, vec![]) }));
    test
}

fn sentences(test: &TestHead, id: cohabit_types::JobId) -> String {
    test.reader().sentences(id).unwrap().join(" ")
}

#[test]
fn an_order_names_the_account_and_the_role() {
    for (account, runs_as) in [(None, "ada"), (Some("al"), "al")] {
        let mut test = TestHead::with_devices(1);
        let by = Principal { account: account.map(str::to_owned), ..Principal::new("ada", Role::Admin) };
        let submit = Submit { spec: command(), idempotency_key: None, estimate: None };
        test.request(by, Request::Submit(Box::new(submit)));
        test.planned();
        let run = test.runs().remove(0);
        assert_eq!((run.user.as_str(), run.account.as_str(), run.role), ("ada", runs_as, Role::Admin));
    }
}

#[test]
fn a_job_that_claims_cores_or_memory_shows_whether_the_claim_is_enforced() {
    let mut test = head_where(Enforcement::Enforced);
    let id = test.submit(claiming());
    assert_eq!(test.record(id).host_limits(), Some(("node1", &Enforcement::Enforced)));
    let unenforced = Enforcement::Unenforced("no delegated cgroup".into());
    let mut test = head_where(unenforced.clone());
    let id = test.submit(claiming());
    assert_eq!(test.record(id).host_limits(), Some(("node1", &unenforced)));
    let explanation = sentences(&test, id);
    assert!(
        explanation.contains("cores and host memory are not enforced on node node1: no delegated cgroup."),
        "{explanation}"
    );
    let mut test = head_where(unenforced);
    let id = test.submit(command());
    assert_eq!(test.record(id).host_limits(), None, "it claims nothing");
}

#[test]
fn a_private_user_id_is_recorded_once() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(command());
    for _ in 0..2 {
        test.event(Event::Report(key(1, 1), Report::PrivateUser { rank: rank(1, 1), uid: 61_184 }));
    }
    let private_user = JobEventKind::PrivateUser { rank: rank(1, 1), account: "ada".into(), uid: 61_184 };
    assert_eq!(test.head.job_history(id).iter().filter(|event| event.kind == private_user).count(), 1);
    assert_eq!(test.record(id).attempts[0].ranks[0].private_uid, Some(61_184));
    assert!(sentences(&test, id).contains("the job runs there as user id 61184, which no other job has"));
}

#[test]
fn running_out_of_host_memory_is_a_state_of_its_own_and_uses_retries() {
    for (limit, reason) in [(Some(MEMORY), ReasonCode::MemoryLimit), (None, ReasonCode::Oom)] {
        let mut test = TestHead::with_devices(1);
        let retry = RetryPolicy { limit: 1, backoff: Span::ZERO, backoff_cap: Span::ZERO };
        let id = test.submit(JobSpec { retry, ..claiming() });
        let outcome = || Outcome::OutOfMemory { code: 137, limit, peak: limit };
        test.ended(rank(1, 1), outcome(), None);
        assert_eq!((test.state(id), test.record(id).attempt), (JobState::Running, 2));
        test.ended(rank(1, 2), outcome(), None);
        let record = test.record(id);
        assert_eq!((record.state, record.reason_code), (JobState::OutOfMemory, reason));
        assert_eq!(record.shell_code(), Some(137));
        assert_eq!(record.reason.contains("limit of 2 GiB"), limit.is_some(), "{}", record.reason);
    }
}
