//! A job whose faults break MPS servers loses its neighbors after two, and is held if it fails alone, too.

use cohabit_policy::parse_policy;
use cohabit_types::{
    ChangeResult, JobChange, JobId, JobSpec, JobState, Outcome, ReasonCode, RetryPolicy, Share, Sharing,
    Signal, Span, StopReason,
};

use super::kit::*;
use crate::Head;

/// What its own fault on the GPU looks like.
const FAULT: Option<StopReason> = Some(StopReason::MpsFault);

fn killed() -> Outcome {
    Outcome::Signalled(Signal::KILL)
}

/// A third of a device, with this many retries and no pauses between them.
fn patient(retries: u32) -> JobSpec {
    let retry = RetryPolicy { limit: retries, backoff: Span::ZERO, backoff_cap: Span::ZERO };
    JobSpec { retry, ..part(300) }
}

/// A neighbor, and a job that has broken the MPS server of their GPU twice. The policy is this one.
fn culprit(policy: &str, retries: u32) -> (TestHead, JobId, JobId) {
    let mut test = TestHead::with_devices(2);
    test.follow(parse_policy(policy).unwrap());
    // Fills the second device.
    let other = test.submit(gpus(1));
    let neighbor = test.submit(part(300));
    let culprit = test.submit(patient(retries));
    assert_eq!(test.record(culprit).sharing_with, [neighbor], "{policy}");
    for attempt in 1..=2 {
        test.runs();
        test.ended(rank(culprit.number, attempt), killed(), FAULT);
    }
    assert_eq!((test.state(other), test.state(neighbor)), (JobState::Running, JobState::Running));
    (test, neighbor, culprit)
}

#[test]
fn after_two_faults_every_policy_gives_the_culprit_a_gpu_to_itself() {
    for policy in ["fifo", "first-fit-sharing", "hybrid", "a-srpt"] {
        let (mut test, neighbor, culprit) = culprit(policy, 9);
        let waits = test.record(culprit);
        assert_eq!((waits.state, waits.attempt), (JobState::Pending, 2), "{policy}: no GPU is free");
        let why =
            "; it has its GPU to itself, because its faults on the GPU broke the MPS server in 2 attempts";
        assert!(waits.reason.ends_with(why), "{policy}: {}", waits.reason);
        test.ended(rank(neighbor.number, 1), Outcome::Exited(0), None);
        let runs = test.record(culprit);
        assert_eq!((runs.state, runs.attempt), (JobState::Running, 3), "{policy}");
        assert_eq!(runs.latest().unwrap().ranks[0].share, Share::WHOLE, "{policy}");
        assert!(runs.reason.ends_with(why), "{policy}: {}", runs.reason);
        let order = test.runs().pop().unwrap();
        assert_eq!((order.attempt, order.spec.demand.sharing), (culprit.attempt(3), Sharing::Exclusive));
        let late = test.submit(part(300));
        assert_eq!(test.state(late), JobState::Pending, "{policy}: nobody joins it");
    }
}

#[test]
fn one_fault_and_faults_of_others_change_nothing() {
    let mut test = TestHead::with_devices(1);
    let neighbor = test.submit(part(300));
    let id = test.submit(patient(9));
    test.ended(rank(id.number, 1), killed(), FAULT);
    for attempt in 2..=3 {
        test.ended(rank(id.number, attempt), killed(), Some(StopReason::MpsFaultVictim));
    }
    let record = test.record(id);
    assert_eq!((record.attempt, record.sharing_with), (4, vec![neighbor]));
}

/// A culprit whose third attempt has failed.
fn held() -> (TestHead, JobId) {
    let (mut test, neighbor, culprit) = culprit("fifo", 9);
    test.ended(rank(neighbor.number, 1), Outcome::Exited(0), None);
    test.ended(rank(culprit.number, 3), Outcome::Exited(1), None);
    (test, culprit)
}

#[test]
fn a_culprit_that_fails_alone_is_held_with_the_reason_until_it_is_released() {
    let (mut test, id) = held();
    let record = test.record(id);
    assert_eq!((record.state, record.reason_code), (JobState::Held, ReasonCode::HeldAfterFaults));
    assert_eq!(
        record.reason,
        "its faults on the GPU broke the MPS server in 2 attempts, and attempt 3 failed alone on its GPU: release \
         it to let it run again, alone; it is held again if it fails again"
    );
    assert_eq!(test.change(JobChange::Release, id), ChangeResult::Done);
    let record = test.record(id);
    assert_eq!((record.state, record.attempt), (JobState::Running, 4));
    assert_eq!(record.latest().unwrap().ranks[0].share, Share::WHOLE, "a release forgets nothing");
    test.ended(rank(id.number, 4), killed(), FAULT);
    assert_eq!(test.record(id).reason_code, ReasonCode::HeldAfterFaults);
    assert!(test.record(id).reason.contains("in 3 attempts, and attempt 4"));
}

#[test]
fn a_hold_of_its_user_has_the_usual_reason() {
    let (mut test, _, id) = culprit("fifo", 9);
    assert_eq!(test.change(JobChange::Hold, id), ChangeResult::Done);
    assert_eq!(test.record(id).reason_code, ReasonCode::HeldByUser);
}

#[test]
fn a_culprit_without_retries_left_fails_and_one_that_succeeds_alone_completes() {
    for (outcome, state) in [(killed(), JobState::Failed), (Outcome::Exited(0), JobState::Completed)] {
        let (mut test, neighbor, id) = culprit("fifo", 2);
        test.ended(rank(neighbor.number, 1), Outcome::Exited(0), None);
        test.ended(rank(id.number, 3), outcome, None);
        assert_eq!(test.state(id), state);
    }
}

#[test]
fn a_head_that_restarts_from_a_snapshot_or_the_journal_forgets_no_fault() {
    let (test, id) = held();
    let (rest, parts) = test.head.split_for_snapshot(1);
    let restored = Head::from_snapshot(rest, parts.collect()).unwrap();
    let mut replayed = Head::new();
    for (at, event) in test.events.clone() {
        replayed.handle(at, event, &mut Vec::new());
    }
    for head in [restored, replayed] {
        let record = head.at(test.now).record(id).unwrap();
        assert_eq!((record.state, record.reason_code), (JobState::Held, ReasonCode::HeldAfterFaults));
        assert_eq!(head.demand(id).sharing, Sharing::Exclusive);
    }
}
