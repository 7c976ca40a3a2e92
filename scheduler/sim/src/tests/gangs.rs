//! Scenarios of gangs: jobs whose ranks run on several machines live and die as one.

use std::collections::BTreeSet;

use cohabit_types::{
    AttemptRecord, GpuRequest, JobSpec, JobState, LaunchMode, Outcome, Spread, StartFailure, StopReason,
};

use super::kit::*;
use crate::machine::Disk;
use crate::scenario::{ExternalEvent, Scenario};

/// A job with one device on each of this many machines.
fn gang(nodes: u32, alone: u64) -> JobSpec {
    let mut spec = work(alone);
    spec.demand.nodes = nodes;
    spec
}

/// A job with one rank for each of this many devices on any machines.
fn spread(devices: u32, alone: u64) -> JobSpec {
    let mut spec = work(alone);
    spec.demand.gpus = GpuRequest::Whole(devices);
    spec.demand.spread = Spread::Free;
    spec.launch = LaunchMode::PerGpu;
    spec
}

fn nodes(attempt: &AttemptRecord) -> BTreeSet<&str> {
    attempt.ranks.iter().map(|rank| rank.node.as_str()).collect()
}

/// A cluster whose first ports for ranks are used by other programs.
fn with_foreign_ports(machines: u32, ports: u16) -> Scenario {
    let mut scenario = cluster(machines);
    scenario.shapes.iter_mut().for_each(|shape| shape.foreign_ports = ports);
    scenario
}

#[test]
fn a_gang_waits_until_all_of_its_ranks_fit() {
    let mut blocker = work(500);
    blocker.demand.gpus = GpuRequest::Whole(2);
    let run = held(cluster(2).submit(at(50), blocker).submit(at(60), gang(2, 100)));
    let [blocker, gang] = run.jobs.as_slice() else { panic!("{} jobs", run.jobs.len()) };
    assert!(gang.started_at >= blocker.ended_at, "one of its machines was full");
    assert_eq!((gang.state, gang.attempts.len(), run.counters.ranks), (JobState::Completed, 1, 3));
}

#[test]
fn ranks_spread_over_unlike_parts_of_machines_run_as_one() {
    let run = held(cluster(2).submit(at(50), spread(3, 100)));
    let [attempt] = only(&run).attempts.as_slice() else { panic!("{:?}", only(&run).attempts) };
    assert_eq!((attempt.ranks.len(), nodes(attempt).len()), (3, 2));
    assert_eq!((only(&run).state, run.counters.ranks), (JobState::Completed, 3));
}

#[test]
fn a_gang_survives_the_death_of_its_worker_daemon() {
    let scenario = cluster(2)
        .submit(at(50), gang(2, 500))
        .inject(at(100), ExternalEvent::CrashWorker { node: 1, down_for: secs(60) });
    let run = held(scenario);
    assert_eq!(
        (only(&run).state, only(&run).attempts.len(), run.counters.ranks),
        (JobState::Completed, 1, 2)
    );
}

#[test]
fn a_gang_that_loses_a_machine_for_good_runs_again_on_the_others() {
    let crash = ExternalEvent::CrashMachine { node: 1, down_for: None, disk: Disk::Kept };
    let run = held(cluster(3).submit(at(50), gang(2, 500)).inject(at(100), crash));
    let [first, second] = only(&run).attempts.as_slice() else { panic!("{:?}", only(&run).attempts) };
    assert_eq!(nodes(first), BTreeSet::from(["node-0", "node-1"]));
    assert_eq!(nodes(second), BTreeSet::from(["node-0", "node-2"]));
    assert_eq!((only(&run).state, run.counters.ranks), (JobState::Completed, 4));
}

#[test]
fn a_gang_cut_in_two_is_stopped_on_both_sides_before_it_runs_again() {
    let scenario =
        cluster(3).submit(at(50), gang(2, 2_000)).inject(at(100), cut(1, 3_000, 0, 0)).quiet(at(20_000));
    let run = held(scenario);
    let [first, second] = only(&run).attempts.as_slice() else { panic!("{:?}", only(&run).attempts) };
    assert!(first.ranks.iter().all(|rank| rank.outcome.is_some()));
    assert_eq!(nodes(second), BTreeSet::from(["node-0", "node-2"]));
    assert!(second.started_at >= first.ended_at.expect("it has ended"));
    assert_eq!(only(&run).state, JobState::Completed);
}

#[test]
fn a_head_that_dies_while_a_gang_starts_starts_it_once() {
    for effects_lost in 0..4 {
        let scenario = cluster(2)
            .inject(at(50), ExternalEvent::CrashHead { effects_lost, down_for: secs(3) })
            .submit(at(50), gang(2, 100));
        let run = held(scenario);
        assert_eq!(only(&run).state, JobState::Completed, "{effects_lost} lost");
        assert!(only(&run).attempts.len() <= 2, "{:?}", only(&run).attempts);
    }
}

#[test]
fn a_gang_whose_port_is_taken_uses_another() {
    let run = held(with_foreign_ports(2, 4).submit(at(50), gang(2, 100)));
    let attempts = &only(&run).attempts;
    let [failed @ .., last] = attempts.as_slice() else { panic!("it never ran") };
    let taken = |attempt: &AttemptRecord| {
        matches!(attempt.ranks[0].outcome, Some(Outcome::NotStarted(StartFailure::PortTaken(_))))
    };
    assert!(!failed.is_empty() && failed.iter().all(taken), "{failed:?}");
    assert!(failed.iter().all(|attempt| attempt.stopped == Some(StopReason::GangBroken)));
    assert_eq!((only(&run).state, nodes(last).len()), (JobState::Completed, 2));
}

#[test]
fn gangs_on_the_same_machines_get_different_ports() {
    let scenario = (0..4).fold(cluster(2), |scenario, _| {
        let mut spec = gang(2, 200);
        spec.demand.gpus = GpuRequest::Part(cohabit_types::Share(500));
        scenario.submit(at(50), spec)
    });
    let run = held(scenario);
    let finished =
        |job: &cohabit_types::JobRecord| job.state == JobState::Completed && job.attempts.len() == 1;
    assert!(run.jobs.len() == 4 && run.jobs.iter().all(finished), "a shared port would fail a start");
}
