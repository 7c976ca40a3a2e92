//! One rank of a gang fails: the whole gang stops and starts again, never part of it.

use crate::kit::*;

/// Four ranks, two on each of two nodes.
const FOUR: [&str; 8] = ["--nodes", "2", "--gpus", "4", "--launch", "per-gpu", "--grace", "1s"];

/// Lets the second attempt end once all of its ranks run.
fn second_is_whole(cluster: &Cluster, job: &str, log: &AttemptLog, ranks: u32) {
    until_within(3 * TIMEOUT, "all start again", || log.started(2).len() == ranks as usize);
    log.go();
    cluster.completed_in(2, job);
    log.assert_whole(2, ranks);
}

#[test]
fn a_rank_of_four_that_dies_ends_the_gang_and_all_four_start_again() {
    let cluster = Cluster::start(&["host:2", "host:2"]);
    let log = cluster.attempt_log("log");
    let job = cluster.submit(&[&FOUR[..], &["--retries", "1"]].concat(), &log.script());
    log.until_started(1, 4);
    let victim = log.started(1).into_iter().find(|entry| entry.rank == 2).unwrap();
    kill_hard(victim.pid);
    second_is_whole(&cluster, &job, &log, 4);
}

#[test]
fn an_executor_of_a_gang_that_dies_ends_the_gang_and_all_four_start_again() {
    let cluster = Cluster::start(&["host:2", "host:2"]);
    let log = cluster.attempt_log("log");
    let job = cluster.submit(&FOUR, &log.script());
    log.until_started(1, 4);
    kill_hard(cluster.executor_of(1, &format!("{job}/1/3")));
    second_is_whole(&cluster, &job, &log, 4);
}

#[test]
fn a_gang_survives_a_short_link_failure_of_one_node() {
    let mut cluster = Cluster::start(&["host:2"]);
    let wire = Proxy::to(cluster.address());
    cluster.add_worker_through(&wire, "host:2", &[]);
    let log = cluster.attempt_log("log");
    let job = cluster.submit(&FOUR, &log.script());
    let pids = log.until_started(1, 4);
    wire.cut();
    cluster.until_node("node1", "UNREACHABLE");
    assert_eq!(cluster.state(&job), "RUNNING");
    wire.mend();
    cluster.until_node("node1", "UP");
    log.go();
    cluster.completed_in(1, &job);
    log.assert_whole(1, 4);
    assert_eq!(log.until_started(1, 4), pids);
}

/// Tests two gangs at once, because both must wait until their nodes are given up.
#[test]
fn a_gang_restarts_completely_when_a_node_vanishes_or_stays_disconnected() {
    let mut cluster = Cluster::with_head(&["--policy", "fifo", "--lost-after", "1s"], &[]);
    let wire = Proxy::to(cluster.address());
    let soon = ["--orphan-grace", "1s"];
    let two = ["--nodes", "2", "--grace", "1s"];
    cluster.add_worker("host:1");
    cluster.add_worker_through(&wire, "host:1", &soon);
    let (cut_off, vanishes) = (cluster.attempt_log("cut-off"), cluster.attempt_log("vanishes"));
    let first = cluster.submit(&two, &cut_off.script());
    cut_off.until_started(1, 2);
    cluster.add_worker("host:1");
    cluster.add_worker_with("host:1", &soon);
    let second = cluster.submit(&two, &vanishes.script());
    vanishes.until_started(1, 2);
    wire.cut();
    cluster.machine_dies(3);
    cluster.add_worker("host:2");
    second_is_whole(&cluster, &first, &cut_off, 2);
    second_is_whole(&cluster, &second, &vanishes, 2);
    // Nobody was killed here: all told their end before anyone began anew.
    cut_off.assert_ended_before_next(1);
}
