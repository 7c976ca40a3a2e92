//! Links that break, for less than `orphan-grace` and for longer.

use crate::kit::*;

#[test]
fn a_short_link_failure_has_no_effect() {
    let mut cluster = Cluster::start(&[]);
    let wire = Proxy::to(cluster.address());
    cluster.add_worker_through(&wire, "host:2", &[]);
    let logs = [cluster.attempt_log("goes-on"), cluster.attempt_log("ends-meanwhile")];
    let jobs = logs.each_ref().map(|log| cluster.submit(&[], &log.script()));
    let pids = logs.each_ref().map(|log| log.until_started(1, 1));
    wire.cut();
    cluster.until_node("node0", "UNREACHABLE");
    logs[1].go();
    let outcome = format!("worker0/ranks/{}/1/0/outcome.json", jobs[1]);
    cluster.until_file(&outcome);
    let meanwhile = cluster.submit(&[], "true");
    assert_eq!(cluster.state(&meanwhile), "PENDING");
    wire.mend();
    assert_eq!(cluster.end(&jobs[1])["attempt"], 1);
    assert_eq!(cluster.end(&meanwhile)["attempt"], 1);
    logs[0].go();
    assert_eq!(cluster.end(&jobs[0])["attempt"], 1);
    logs.iter().for_each(|log| log.assert_whole(1, 1));
    assert_eq!(logs.each_ref().map(|log| log.until_started(1, 1)), pids);
}

#[test]
fn a_short_silence_of_a_link_has_no_effect() {
    let mut cluster = Cluster::start(&[]);
    let wire = Proxy::to(cluster.address());
    cluster.add_worker_through(&wire, "host:2", &[]);
    let logs = [cluster.attempt_log("goes-on"), cluster.attempt_log("ends-meanwhile")];
    let jobs = logs.each_ref().map(|log| cluster.submit(&[], &log.script()));
    let pids = logs.each_ref().map(|log| log.until_started(1, 1));
    wire.silence();
    logs[1].go();
    cluster.until_node("node0", "UNREACHABLE");
    assert_eq!(jobs.each_ref().map(|job| cluster.state(job)), ["RUNNING", "RUNNING"]);
    wire.mend();
    assert_eq!(cluster.end(&jobs[1])["attempt"], 1);
    logs[0].go();
    assert_eq!(cluster.end(&jobs[0])["attempt"], 1);
    logs.iter().for_each(|log| log.assert_whole(1, 1));
    assert_eq!(logs.each_ref().map(|log| log.until_started(1, 1)), pids);
}

/// Three nodes fail in three ways: one behind a cut link, one behind a silent link, and one whose daemon
/// hangs. The jobs record their own ends, which proves that each ended before it started again.
#[test]
fn a_job_that_the_head_cannot_reach_for_long_is_stopped_and_only_then_runs_elsewhere() {
    let mut cluster = Cluster::with_head(&["--policy", "fifo", "--lost-after", "1s"], &[]);
    let wires = [(); 2].map(|()| Proxy::to(cluster.address()));
    let logs = [cluster.attempt_log("cut"), cluster.attempt_log("silent"), cluster.attempt_log("hangs")];
    let soon = ["--orphan-grace", "1s"];
    wires.iter().for_each(|wire| cluster.add_worker_through(wire, "host:1", &soon));
    cluster.add_worker_with("host:1", &soon);
    let jobs = logs.each_ref().map(|log| cluster.submit(&["--grace", "1s"], &log.script()));
    logs.iter().for_each(|log| _ = log.until_started(1, 1));
    wires[0].cut();
    wires[1].silence();
    cluster.freeze_worker(2);
    cluster.add_worker("host:3");
    for (log, job) in logs.iter().zip(&jobs) {
        // The head waits for longer than tests usually have patience.
        until_within(3 * TIMEOUT, "the job runs elsewhere", || log.started(2).len() == 1);
        log.assert_ended_before_next(1);
        log.go();
        completed_in_second(&cluster, job);
        log.assert_whole(2, 1);
    }
    // What the old attempts have to say when they are heard again changes nothing.
    wires.iter().for_each(Proxy::mend);
    cluster.thaw_worker(2);
    ["node0", "node1", "node2"].iter().for_each(|node| cluster.until_node(node, "UP"));
    jobs.iter().for_each(|job| completed_in_second(&cluster, job));
}

fn completed_in_second(cluster: &Cluster, job: &str) {
    let ended = cluster.completed_in(2, job);
    assert_eq!(ended["nodes"][0], "node3");
}
