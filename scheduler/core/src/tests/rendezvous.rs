//! The rendezvous of an attempt's ranks.

use std::collections::BTreeSet;

use cohabit_policy::{Action, Plan};
use cohabit_types::{
    ClientRequestId, DeviceId, JobId, JobSpec, JobState, LaunchMode, Outcome, Placement, RankPlacement,
    Request, RunOrder, Share, Spread, StartFailure, Submit,
};

use super::kit::*;
use crate::interface::Event;

/// The only port of the orders given since the last look, with its address.
fn rendezvous(runs: &[RunOrder]) -> (String, u16) {
    let points: BTreeSet<_> = runs
        .iter()
        .map(|run| run.rendezvous.clone().expect("there are ports"))
        .map(|it| (it.address, it.port))
        .collect();
    assert_eq!(points.len(), 1, "all ranks of an attempt agree");
    points.into_iter().next().unwrap()
}

#[test]
fn concurrent_attempts_on_a_node_use_different_rendezvous_ports() {
    let mut test = TestHead::with_devices(3);
    let mut ports = BTreeSet::new();
    for _ in 0..3 {
        test.submit(gpus(1));
        let (address, port) = rendezvous(&test.runs());
        assert_eq!(address, "10.0.0.1");
        ports.insert(port);
    }
    assert_eq!(ports, BTreeSet::from([29_601, 29_602, 29_603]), "each of those that the worker offers");
}

#[test]
fn where_there_are_too_few_ports_attempts_share_them() {
    let mut test = TestHead::with_devices(3);
    for _ in 0..7 {
        test.submit(part(100));
    }
    let ports: Vec<u16> = test.runs().iter().map(|run| run.rendezvous.clone().unwrap().port).collect();
    let uses = |port| ports.iter().filter(|used| **used == port).count();
    let mut uses = [29_601, 29_602, 29_603].map(uses);
    uses.sort_unstable();
    assert_eq!(uses, [2, 2, 3]);
}

#[test]
fn a_worker_without_rendezvous_ports_still_starts_ranks() {
    let mut test = TestHead::new();
    let mut inventory = inventory(1, 1, vec![]);
    inventory.rendezvous_ports.clear();
    test.event(Event::Joined(key(1, 1), inventory));
    test.submit(gpus(1));
    assert_eq!(test.runs()[0].rendezvous, None);
}

#[test]
fn the_rendezvous_is_on_the_node_of_rank_0() {
    let mut test = TestHead::with_devices(1);
    test.join(2, 1);
    let mut spec = JobSpec { launch: LaunchMode::PerGpu, ..gpus(2) };
    spec.demand.spread = Spread::Free;
    let submit = Submit { spec, idempotency_key: None, estimate: None };
    test.event(Event::Client(ClientRequestId(1), ada(), Request::Submit(Box::new(submit))));
    let ticket = test.head.open_plan_request.expect("a new job is a question to the policy");
    let part = |number, rank| RankPlacement {
        node: key(number, 1).node,
        devices: vec![DeviceId("gpu-0".into())],
        share: Share::WHOLE,
        ranks: vec![rank],
        host: None,
    };
    let placement = Placement { parts: vec![part(1, 1), part(2, 0)] };
    let actions = vec![Action::Place {
        job: JobId::new(1),
        placement,
        runtime: None,
        slowdown: None,
        why: String::new(),
    }];
    test.event(Event::Planned(ticket, Plan { actions, ..Plan::default() }));
    let runs = test.runs();
    assert_eq!(rendezvous(&runs).0, "10.0.0.2");
    let ranks: Vec<_> = runs
        .iter()
        .map(|run| (run.nodes[run.ranks[0].node_rank as usize].as_str(), run.ranks[0].rank))
        .collect();
    assert_eq!(ranks, [("10.0.0.1", 1), ("10.0.0.2", 0)]);
}

#[test]
fn a_port_in_use_is_not_the_jobs_fault_and_the_next_attempt_uses_another() {
    let mut test = TestHead::with_devices(1);
    let job = test.submit(gpus(1));
    let (_, first) = rendezvous(&test.runs());
    test.ended(job.attempt(1).rank(0), Outcome::NotStarted(StartFailure::PortTaken(first)), None);
    let (_, second) = rendezvous(&test.runs());
    assert_ne!(second, first);
    test.ended(job.attempt(2).rank(0), Outcome::Exited(0), None);
    assert_eq!((test.state(job), test.record(job).attempts.len()), (JobState::Completed, 2));
    let ports: BTreeSet<u16> = (0..3)
        .map(|_| {
            let next = test.submit(gpus(1));
            let (_, port) = rendezvous(&test.runs());
            test.ended(next.attempt(1).rank(0), Outcome::Exited(0), None);
            port
        })
        .collect();
    assert!(!ports.contains(&first), "nobody is sent there again");
}

#[test]
fn a_job_that_finds_every_port_in_use_ends_with_a_reason() {
    let mut test = TestHead::with_devices(1);
    let job = test.submit(gpus(1));
    for attempt in 1..=3 {
        let (_, port) = rendezvous(&test.runs());
        test.ended(job.attempt(attempt).rank(0), Outcome::NotStarted(StartFailure::PortTaken(port)), None);
    }
    assert_eq!(test.state(job), JobState::NodeFail);
}
