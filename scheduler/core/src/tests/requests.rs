//! Permissions, refusals and their sentences.

use cohabit_types::{
    Bytes, ChangeResult, Demand, DrainRequest, JobChange, JobId, JobRef, JobRevision, JobSpec, JobState,
    NodeState, Order, Outcome, Principal, RefusalCode, Reply, Request, Role, Signal, Span, StopReason,
    Submit,
};

use super::kit::*;
use crate::{Config, Event};

fn refusal(reply: Reply) -> (RefusalCode, String) {
    match reply {
        Reply::Refused(refusal) => (refusal.code, refusal.message),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_repeated_submission_with_the_same_key_makes_one_job() {
    let mut test = TestHead::with_devices(1);
    let keyed = || Submit { spec: gpus(1), idempotency_key: Some("k".into()), estimate: None };
    let first = test.request(ada(), Request::Submit(Box::new(keyed())));
    let again = test.request(ada(), Request::Submit(Box::new(keyed())));
    assert_eq!(first, again);
    let other_user = test.request(root(), Request::Submit(Box::new(keyed())));
    assert_eq!(other_user, Reply::Accepted { job: job(2), members: 1, notes: vec![] });
}

/// The first job's id would make the user believe that the second one was accepted.
#[test]
fn a_key_of_another_command_is_refused() {
    let mut test = TestHead::with_devices(1);
    let keyed =
        |spec| Request::Submit(Box::new(Submit { spec, idempotency_key: Some("k".into()), estimate: None }));
    test.request(ada(), keyed(gpus(1)));
    let environment = [("RUN".to_owned(), "2".to_owned())].into();
    let again = test.request(ada(), keyed(JobSpec { environment, ..gpus(1) }));
    assert_eq!(again, Reply::Accepted { job: job(1), members: 1, notes: vec![] });
    let other = JobSpec::command(vec!["other".into()], "/".into());
    for spec in [other, array(0, 3, None)] {
        let (code, message) = refusal(test.request(ada(), keyed(spec)));
        assert_eq!(code, RefusalCode::Invalid);
        assert!(message.contains("belongs to job 1"), "{message}");
    }
}

#[test]
fn a_job_that_no_node_can_hold_is_refused_with_the_largest_node() {
    let mut test = TestHead::new();
    assert!(matches!(test.try_submit(gpus(64)), Reply::Accepted { .. }), "an unknown node may still come");
    test.join(1, 2);
    test.join(2, 4);
    let refused =
        |test: &mut TestHead, demand: Demand| refusal(test.try_submit(JobSpec { demand, ..command() }));
    let (code, message) = refused(&mut test, gpus(5).demand);
    assert_eq!(code, RefusalCode::Unsatisfiable);
    assert_eq!(
        message,
        "no node can ever run this job: it needs 5 devices on one node; the largest node is node2 with 4"
    );
    let (_, message) = refused(&mut test, Demand { gpu_memory: Some(Bytes(81 << 30)), ..Demand::default() });
    assert!(
        message.ends_with(
            "it needs 81 GiB of memory on each device; the largest device is on node2 with 80 GiB"
        )
    );
    let (_, message) = refused(&mut test, Demand { cpus: 9, ..Demand::default() });
    assert!(message.contains("9 cores") && message.ends_with("with 8"), "{message}");
    let (_, message) = refused(&mut test, Demand { nodes: 3, ..Demand::default() });
    assert!(message.ends_with("it needs 3 nodes at once; the cluster has 2"), "{message}");
}

#[test]
fn users_change_only_their_own_jobs() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    let bob = Principal::new("bob", Role::User);
    let cancel = Request::Change(JobChange::Cancel, vec![id]);
    let Reply::Changed(verdicts) = test.request(bob, cancel.clone()) else { panic!() };
    let ChangeResult::Refused(refusal) = &verdicts[0].1 else { panic!("{verdicts:?}") };
    assert_eq!(refusal.code, RefusalCode::NotAllowed);
    assert_eq!(refusal.message, "job 1 belongs to ada: only ada or an admin can cancel it");
    assert_eq!(test.request(root(), cancel), Reply::Changed(vec![(id, ChangeResult::Done)]));
}

#[test]
fn a_worker_token_cannot_submit() {
    let mut test = TestHead::with_devices(1);
    let worker = Principal::new("node1", Role::Worker);
    let submit = Submit { spec: gpus(1), idempotency_key: None, estimate: None };
    assert_eq!(refusal(test.request(worker, Request::Submit(Box::new(submit)))).0, RefusalCode::NotAllowed);
}

#[test]
fn a_drained_node_finishes_its_jobs_and_takes_no_more() {
    let mut test = TestHead::with_devices(2);
    let first = test.submit(gpus(1));
    assert_eq!(
        refusal(test.request(ada(), Request::Drain(DrainRequest::new("node1")))).0,
        RefusalCode::NotAllowed
    );
    assert_eq!(test.request(root(), Request::Drain(DrainRequest::new("node1"))), Reply::Node("node1".into()));
    let second = test.submit(gpus(1));
    assert_eq!(test.state(second), JobState::Pending);
    assert_eq!(test.head.node_records()[0].state, NodeState::Draining);
    test.ended(first.attempt(1).rank(0), Outcome::Exited(0), None);
    assert_eq!(test.head.node_records()[0].state, NodeState::Drained);
    test.request(root(), Request::Resume("node1".into()));
    assert_eq!(test.state(second), JobState::Running);
    let (code, message) = refusal(test.request(root(), Request::Drain(DrainRequest::new("nod1"))));
    assert_eq!(
        (code, message.as_str()),
        (RefusalCode::NotFound, "there is no node 'nod1': the nodes are node1")
    );
}

#[test]
fn jobs_that_still_run_at_the_deadline_of_a_drain_are_queued_again() {
    let mut test = TestHead::with_devices(2);
    let (ends, stays) = (test.submit(gpus(1)), test.submit(gpus(1)));
    let (reason, within) = (Some("new power supply".to_owned()), Some(Span::from_secs(600)));
    let drain = DrainRequest { reason: reason.clone(), within, ..DrainRequest::new("node1") };
    test.request(root(), Request::Drain(drain.clone()));
    let drained = test.head.node_records()[0].drain.clone().unwrap();
    assert_eq!((drained.by.as_str(), &drained.reason), ("root", &reason));
    test.ended(ends.attempt(1).rank(0), Outcome::Exited(0), None);
    test.after(Span::from_secs(599));
    assert_eq!(test.state(stays), JobState::Running);
    test.effects();
    test.after(Span::from_secs(1));
    let stop = Order::Stop { attempt: stays.attempt(1), why: StopReason::Requeued };
    assert_eq!((test.state(stays), test.orders()), (JobState::Completing, vec![(key(1, 1), stop)]));
    test.ended(stays.attempt(1).rank(0), Outcome::Signalled(Signal::TERM), Some(StopReason::Requeued));
    assert_eq!((test.state(ends), test.state(stays)), (JobState::Completed, JobState::Pending));
    assert_eq!(test.head.node_records()[0].state, NodeState::Drained);
    test.request(root(), Request::Resume("node1".into()));
    assert_eq!((test.state(stays), test.head.node_records()[0].drain.clone()), (JobState::Running, None));
    test.request(root(), Request::Drain(DrainRequest { within, ..DrainRequest::new("node1") }));
    test.request(root(), Request::Resume("node1".into()));
    test.after(Span::from_secs(600));
    assert_eq!(test.state(stays), JobState::Running, "the node was resumed before the deadline");
}

#[test]
fn references_resolve_to_jobs() {
    let mut test = TestHead::with_devices(1);
    for name in ["a", "b", "b"] {
        test.submit(JobSpec { name: name.into(), ..gpus(1) });
    }
    let resolve = |text: &str| {
        let reference: JobRef = text.parse().unwrap();
        match test.head.resolve(&ada(), &[reference]) {
            Ok(jobs) => Ok(jobs.iter().map(|id| id.number).collect::<Vec<_>>()),
            Err(refusal) => Err((refusal.code, refusal.message)),
        }
    };
    assert!(test.head.resolve(&ada(), &[JobRef::Range(3, 2)]).is_err());
    assert_eq!(resolve("2"), Ok(vec![2]));
    assert_eq!(resolve("2-9"), Ok(vec![2, 3]));
    assert_eq!(resolve("last"), Ok(vec![3]));
    assert_eq!(resolve("@~2"), Ok(vec![1]));
    assert_eq!(resolve("a"), Ok(vec![1]));
    assert_eq!(
        resolve("b"),
        Err((RefusalCode::Ambiguous, "2 jobs are named 'b': give one of the ids 2, 3".into()))
    );
    assert_eq!(resolve("c").unwrap_err().0, RefusalCode::NotFound);
    assert_eq!(resolve("@~3").unwrap_err().0, RefusalCode::NotFound);
    assert_eq!(resolve("1.0").unwrap_err().0, RefusalCode::NotFound);
}

#[test]
fn a_name_means_the_job_that_lives() {
    let mut test = TestHead::with_devices(1);
    let jobs = [(); 3].map(|()| test.submit(JobSpec { name: "b".into(), ..gpus(1) }));
    let named = |test: &TestHead| test.head.resolve(&ada(), &["b".parse().unwrap()]);
    test.ended(jobs[0].attempt(1).rank(0), Outcome::Exited(0), None);
    assert_eq!(named(&test).unwrap_err().message, "2 jobs are named 'b': give one of the ids 2, 3");
    test.ended(jobs[1].attempt(1).rank(0), Outcome::Exited(0), None);
    assert_eq!(named(&test).unwrap(), [jobs[2]]);
    test.ended(jobs[2].attempt(1).rank(0), Outcome::Exited(0), None);
    assert_eq!(named(&test).unwrap_err().code, RefusalCode::Ambiguous);
}

#[test]
fn a_watcher_sees_every_change_and_nothing_else() {
    let mut test = TestHead::with_devices(1);
    let id = test.submit(gpus(1));
    let watch = |test: &TestHead, revision| {
        let changed = test.head.at(test.now).changed_since(&[JobRevision { job: id, revision }]).unwrap();
        changed.first().map(|record| (record.state, record.revision))
    };
    let (state, seen) = watch(&test, 0).unwrap();
    assert_eq!(state, JobState::Running);
    assert_eq!(watch(&test, seen), None);
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!(watch(&test, seen).unwrap().0, JobState::Completed);
}

#[test]
fn ended_jobs_are_forgotten_after_their_retention() {
    let mut test = TestHead::with_devices(1);
    test.event(Event::HeadStarted(Config { archive_after: Span::from_secs(86_400), ..Config::default() }));
    test.rejoin(1, 2, vec![]);
    let id = test.submit(gpus(1));
    test.ended_on(key(1, 2), rank(1, 1), Outcome::Exited(0), None);
    test.after(Span::from_secs(86_399));
    assert!(test.head.at(test.now).record(id).is_some());
    test.after(Span::from_secs(1));
    assert!(test.head.at(test.now).record(JobId::new(1)).is_none());
    assert!(test.head.submissions.is_empty());
}
