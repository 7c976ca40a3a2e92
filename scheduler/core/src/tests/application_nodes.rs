//! On which nodes the processes of an application run.

use cohabit_policy::parse_policy;
use cohabit_types::{
    ApplicationPlace, AttemptId, ChangeResult, Demand, DrainRequest, Entrypoint, GpuRequest, Inventory,
    JobChange, JobId, JobSpec, JobState, Outcome, ReasonCode, RefusalCode, Rendezvous, Request,
    ReservationAccess, ReservationRequest, RetryPolicy, RunnerCount, RunnerRole, Signal, Span, StopReason,
};

use super::applications::{application, main, refusal, root, runner, running};
use super::kit::{self, *};
use crate::{Config, Event};

/// The store of an application on this node.
fn store(application: AttemptId, node: &str) -> JobSpec {
    let mut spec = runner(application, 0);
    if let Entrypoint::Runner(work) = &mut spec.entrypoint {
        (work.role, work.node) = (RunnerRole::Store, Some(node.to_owned()));
    }
    spec
}

fn node_of(test: &TestHead, job: JobId) -> String {
    test.record(job).attempts.last().map(|it| it.ranks[0].node.clone()).unwrap_or_default()
}

/// An application of Ada that runs on the first of two nodes, each with two GPUs; the worker of the first
/// lets no application listen, if so said.
fn without_ports(number: u64) -> TestHead {
    let mut test = TestHead::new();
    for node in 1..=2 {
        let application_ports = node != number;
        let inventory = Inventory { application_ports, ..inventory(node, 2, vec![]) };
        test.event(Event::Joined(key(node, 1), inventory));
    }
    test.planned();
    test.submit(application("search", None));
    test.started(rank(1, 1));
    test.effects();
    test
}

#[test]
fn actors_run_where_there_is_room_and_main_on_the_node_of_the_root() {
    for policy in ["fifo", "fifo-strict", "fifo-greedy", "easy-backfill", "spd", "las", "a-srpt"] {
        let mut test = running(None);
        test.follow(parse_policy(policy).unwrap());
        let both = test.submit(runner(root(), 2_000));
        let elsewhere = test.submit(runner(root(), 1_000));
        let main = test.submit(main(root()));
        assert_eq!(node_of(&test, both), "node1", "{policy}");
        assert_eq!(node_of(&test, elsewhere), "node2", "the GPUs of the first are taken");
        assert_eq!(node_of(&test, main), "node1");
        let second = test.submit(runner(root(), 1_000));
        assert_eq!(node_of(&test, second), "node2");
    }
}

#[test]
fn a_child_is_told_where_the_others_are_and_only_those_that_listen_get_a_port() {
    let mut test = TestHead::with_devices(2);
    test.join(2, 3);
    test.submit(application("search", None));
    let root_run = test.runs().remove(0);
    let coordinator = root_run.rendezvous.clone();
    assert_eq!(coordinator.as_ref().map(|it| it.address.as_str()), Some("10.0.0.1"));
    let here = ApplicationPlace {
        node: "node1".into(),
        port: coordinator.clone(),
        coordinator: coordinator.clone(),
        coordinator_node: "node1".into(),
        gpus: 5,
    };
    assert_eq!(root_run.place, Some(here.clone()));
    test.submit(runner(root(), 2_000));
    test.submit(runner(root(), 1_000));
    test.submit(store(root(), "node2"));
    let runs = test.runs();
    let places: Vec<_> =
        runs.iter().map(|run| (run.rendezvous.clone(), run.place.clone().unwrap())).collect();
    assert_eq!(places[0], (None, ApplicationPlace { port: None, ..here.clone() }));
    let there = ApplicationPlace { node: "node2".into(), port: None, ..here };
    assert_eq!(places[1], (None, there.clone()));
    let (own, place) = places[2].clone();
    assert_eq!(own.as_ref().map(|it| it.address.as_str()), Some("10.0.0.2"));
    assert_eq!(place, ApplicationPlace { port: own, ..there });
    assert_eq!(runs[2].attempt.job, job(4));
    test.submit(command());
    assert_eq!(test.runs()[0].place, None);
}

#[test]
fn a_store_starts_at_once_whatever_waits_before_it_and_holds() {
    let mut test = running(None);
    test.follow(parse_policy("fifo").unwrap());
    for _ in 0..2 {
        test.submit(gpus(2));
    }
    let urgent = test.submit(JobSpec { priority: 9, ..gpus(2) });
    assert_eq!(test.state(urgent), JobState::Pending, "all GPUs are taken");
    let store = test.submit(store(root(), "node2"));
    assert_eq!((test.state(store), node_of(&test, store).as_str()), (JobState::Running, "node2"));
    let count = RunnerCount { role: RunnerRole::Store, placed: 1, waiting: 0 };
    assert_eq!(test.head.application(job(1)).unwrap().counts, [count]);
    assert_eq!(test.record(store).work, "store of application 1");
}

#[test]
fn a_store_does_not_count_against_the_limit_of_its_user() {
    let mut test = running(None);
    let config = Config { max_running_jobs: Some(1), lost_after: Span::from_secs(60), ..Config::default() };
    test.event(Event::HeadStarted(config));
    test.rejoin(1, 2, vec![]);
    test.rejoin(2, 2, vec![]);
    test.planned();
    let root = job(1).attempt(test.record(job(1)).attempt);
    let waits = test.submit(runner(root, 1_000));
    assert_eq!(test.state(waits), JobState::Pending);
    let store = test.submit(store(root, "node2"));
    assert_eq!(test.state(store), JobState::Running);
    assert_eq!(test.head.usage("ada").placed, 1);
}

#[test]
fn a_store_waits_for_its_node_and_says_for_which() {
    let mut test = running(None);
    let store = test.submit(store(root(), "node3"));
    let record = test.record(store);
    assert_eq!((record.state, record.reason_code), (JobState::Pending, ReasonCode::WaitingForNodes));
    assert_eq!(record.reason, "it has to run on node node3, which has not joined this cluster");
    let plain = test.submit(gpus(1));
    assert_eq!(test.state(plain), JobState::Running, "nobody waits behind it");
    test.join(3, 1);
    assert_eq!((test.state(store), node_of(&test, store).as_str()), (JobState::Running, "node3"));
    test.lose(3, 1);
    test.after(Span::from_secs(61));
    let record = test.record(store);
    assert_eq!(record.reason, "it has to run on node node3, which has left");
    assert_eq!(record.attempt, 1, "it does not go to another node");
    test.rejoin(3, 2, vec![]);
    assert_eq!((test.state(store), test.record(store).attempt), (JobState::Running, 2));
}

#[test]
fn a_store_is_tried_again_on_its_node() {
    let mut test = running(None);
    let retry = RetryPolicy { limit: 5, backoff: Span::from_secs(1), backoff_cap: Span::from_secs(1) };
    let store = test.submit(JobSpec { retry, ..store(root(), "node2") });
    test.ended_on(key(2, 1), rank(store.number, 1), Outcome::Signalled(Signal::KILL), None);
    assert_eq!(test.record(store).reason_code, ReasonCode::WaitingForRetry);
    test.after(Span::from_secs(2));
    let record = test.record(store);
    assert_eq!((record.state, record.attempt), (JobState::Running, 2));
    assert_eq!(node_of(&test, store), "node2");
}

#[test]
fn a_node_that_is_drained_takes_the_store_of_what_runs_there() {
    let mut test = running(None);
    test.submit(runner(root(), 2_000));
    let there = test.submit(runner(root(), 1_000));
    assert_eq!(node_of(&test, there), "node2");
    test.request(kit::root(), Request::Drain(DrainRequest::new("node2")));
    let needed = test.submit(store(root(), "node2"));
    assert_eq!(test.state(needed), JobState::Running);
    test.change(JobChange::Cancel, there);
    test.change(JobChange::Cancel, needed);
    for child in [there, needed] {
        let stopped = Some(StopReason::Cancelled);
        test.ended_on(key(2, 1), rank(child.number, 1), Outcome::Signalled(Signal::TERM), stopped);
    }
    let useless = test.submit(store(root(), "node2"));
    assert_eq!(test.record(useless).reason, "it has to run on node node2, which is drained");
}

#[test]
fn a_store_is_not_started_on_a_node_that_is_reserved_for_others() {
    let mut test = running(None);
    let there = test.submit(store(root(), "node2"));
    let minute = Span::from_secs(60);
    let admits = ReservationAccess { users: ["ben".to_owned()].into(), ..ReservationAccess::default() };
    let request = ReservationRequest {
        nodes: vec!["node2".into()],
        from: Some(test.now + minute),
        length: Some(minute),
        admits,
        stop_jobs: true,
        ..ReservationRequest::default()
    };
    test.request(kit::root(), Request::Reserve(Box::new(request)));
    test.after(minute);
    let stopped = Some(StopReason::Requeued);
    test.ended_on(key(2, 1), rank(there.number, 1), Outcome::Signalled(Signal::TERM), stopped);
    let record = test.record(there);
    assert_eq!((record.state, record.attempt), (JobState::Pending, 1));
    assert_eq!(record.reason, "it has to run on node node2, which reservation 1 keeps for others");
    test.after(minute);
    assert_eq!((test.state(there), test.record(there).attempt), (JobState::Running, 2));
}

#[test]
fn a_store_does_not_go_on_beside_processes_that_maintenance_stops() {
    let mut test = running(None);
    test.submit(runner(root(), 2_000));
    let beside = test.submit(runner(root(), 1_000));
    let there = test.submit(store(root(), "node2"));
    assert_eq!(node_of(&test, beside), "node2");
    let request =
        ReservationRequest { nodes: vec!["node2".into()], stop_jobs: true, ..ReservationRequest::default() };
    test.request(kit::root(), Request::Reserve(Box::new(request)));
    let stopped = Some(StopReason::Requeued);
    test.ended_on(key(2, 1), rank(there.number, 1), Outcome::Signalled(Signal::TERM), stopped);
    assert_eq!((test.state(beside), test.state(there)), (JobState::Completing, JobState::Pending));
    assert_eq!(test.record(there).reason, "it has to run on node node2, which is drained");
}

#[test]
fn a_held_store_waits_and_ends_with_its_application() {
    let mut test = running(None);
    let held = test.submit(JobSpec { held: true, ..store(root(), "node2") });
    assert_eq!(test.state(held), JobState::Held);
    assert_eq!(test.change(JobChange::Release, held), ChangeResult::Done);
    assert_eq!(test.state(held), JobState::Running);
    let missing = test.submit(store(root(), "node9"));
    test.ended(rank(1, 1), Outcome::Exited(0), None);
    assert_eq!((test.state(held), test.state(missing)), (JobState::Completing, JobState::Cancelled));
}

#[test]
fn a_store_that_claims_something_is_refused() {
    let mut test = running(None);
    let greedy = Demand { gpus: GpuRequest::Whole(1), ..Demand::default() };
    let refused = refusal(test.try_submit(JobSpec { demand: greedy, ..store(root(), "node2") }));
    assert_eq!(refused.code, RefusalCode::Invalid);
    assert!(refused.message.contains("a store claims nothing"), "{refused}");
}

/// Stores do not count for the limit of their user, so their number is bounded by that of the nodes.
#[test]
fn an_application_has_one_store_on_a_node() {
    let mut test = running(None);
    let first = test.submit(store(root(), "node2"));
    let refused = refusal(test.try_submit(store(root(), "node2")));
    assert_eq!(refused.message, "application 1 has a store on node node2 already: it is job 2");
    test.submit(store(root(), "node3"));
    test.change(JobChange::Cancel, first);
    assert_eq!(test.state(first), JobState::Completing);
    let second = test.submit(store(root(), "node2"));
    assert_eq!(test.state(second), JobState::Running);
}

#[test]
fn an_application_stays_on_a_node_without_ports_for_applications() {
    let mut test = without_ports(1);
    test.submit(runner(root(), 2_000));
    let waits = test.submit(runner(root(), 1_000));
    assert_eq!(test.state(waits), JobState::Pending, "the other node is free, and is not theirs");
    let refused = refusal(test.try_submit(runner(root(), 3_000)));
    let why = "; its application stays on node node1, because its worker does not let applications listen at \
               ports (--no-application-ports)";
    assert!(refused.message.ends_with(why), "{refused}");
    let place = test.runs()[0].place.clone().unwrap();
    assert_eq!((place.port, place.coordinator, place.gpus), (None, None, 2));
    let sentences = test.reader().sentences(waits).unwrap().join(" ");
    assert!(sentences.contains("Its application stays on node node1"), "{sentences}");
}

#[test]
fn children_of_other_nodes_avoid_a_node_without_ports_for_applications() {
    let mut test = without_ports(2);
    test.follow(parse_policy("fifo-greedy").unwrap());
    test.submit(runner(root(), 2_000));
    let waits = test.submit(runner(root(), 1_000));
    assert_eq!(test.state(waits), JobState::Pending);
    let plain = test.submit(gpus(1));
    assert_eq!(node_of(&test, plain), "node2", "other jobs use it");
    assert_eq!(test.runs()[0].place.as_ref().map(|it| it.gpus), Some(2));
    // The worker is started again, without the flag.
    test.rejoin(2, 2, vec![]);
    assert_eq!(node_of(&test, waits), "node2");
}

#[test]
fn a_child_whose_node_is_drained_says_which() {
    let mut test = without_ports(1);
    test.request(kit::root(), Request::Drain(DrainRequest::new("node1")));
    let waits = test.submit(runner(root(), 1_000));
    let reason = test.record(waits).reason;
    assert_eq!(reason, "it has to run on the node of its application, node1, which is drained");
}

#[test]
fn a_coordinator_gets_a_port_of_its_own_while_there_are_any() {
    let mut test = running(None);
    for _ in 0..5 {
        test.submit(runner(root(), 0));
    }
    test.effects();
    let other = test.submit(application("other", None));
    let run = test.runs().remove(0);
    let first = test.head.application(job(1)).unwrap();
    assert_eq!((run.attempt.job, first.node.as_deref()), (other, Some("node1")));
    let Some(Rendezvous { port, .. }) = run.place.and_then(|it| it.port) else { panic!("it has no port") };
    assert_ne!(port, 29_601 + 2, "that of the first application, which is job 1 and its attempt 1");
}
