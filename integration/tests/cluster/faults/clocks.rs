//! Clocks that step by an hour while jobs run: durations keep their length, and times in a job history never
//! fall.
//!
//! The daemons use a clock that the test sets; ranks and executors use the machine's clock.

use jiff::{Timestamp, ToSpan};
use serde_json::Value;

use crate::kit::*;

const HOUR: i64 = 3_600;

/// Checks that the times in the job's history never fall.
fn assert_told_in_order(cluster: &Cluster, job: &str) {
    let explanation = cluster.json(&["explain", job]);
    let at = |chapter: &Value| chapter["at"].as_str().unwrap().parse().unwrap();
    let times: Vec<Timestamp> = explanation["story"].as_array().unwrap().iter().map(at).collect();
    assert!(times.is_sorted(), "{explanation}");
}

fn completed_at_first(cluster: &Cluster, job: &str, log: &AttemptLog) {
    cluster.completed_in(1, job);
    assert_told_in_order(cluster, job);
    log.assert_whole(1, 1);
}

#[test]
fn a_worker_s_clock_that_steps_neither_stops_a_job_early_nor_lets_one_run_on() {
    let mut cluster = Cluster::start(&[]);
    let clock = FakeClock::right(cluster.folder());
    cluster.add_worker_in(&clock.environment(), "host:2", &[]);
    let log = cluster.attempt_log("log");
    let long = cluster.submit(&["--time", "30m"], &log.script());
    log.until_started(1, 1);
    let short_one_is_stopped = |cluster: &Cluster, ahead: i64| {
        let short = cluster.submit(&["--time", "1s"], "sleep 1000");
        assert_eq!(cluster.end(&short)["state"], "TIMEOUT", "{ahead} s ahead");
        assert_eq!(cluster.state(&long), "RUNNING", "{ahead} s ahead");
    };
    for ahead in [HOUR, -HOUR] {
        clock.set(ahead);
        short_one_is_stopped(&cluster, ahead);
    }
    // The next daemon knows the rank only by what its executor says.
    for ahead in [HOUR, -HOUR] {
        cluster.kill_worker(0);
        clock.set(ahead);
        cluster.restart_worker(0);
        short_one_is_stopped(&cluster, ahead);
    }
    log.go();
    completed_at_first(&cluster, &long, &log);
}

#[test]
fn a_job_gets_its_end_time_by_its_own_clock() {
    let mut cluster = Cluster::start(&[]);
    let clock = FakeClock::right(cluster.folder());
    cluster.add_worker_in(&clock.environment(), "host:1", &[]);
    let environment = clock.environment().map(|(name, value)| format!("{name}={value}"));
    let flags = ["--time", "30m", "--env", &environment[0], "--env", &environment[1]];
    for ahead in [HOUR, -HOUR] {
        clock.set(ahead);
        let job = cluster.submit(&flags, "echo $((COHABIT_STOP_AT - $(date +%s)))");
        assert_eq!(cluster.end(&job)["state"], "COMPLETED");
        let left: i64 = cluster.ok(&["logs", &job]).trim().parse().unwrap();
        assert!((1_500..=1_800).contains(&left), "{left} s with a clock that is {ahead} s ahead");
    }
}

/// Runs a job that begins a second from now, by a clock that is this many seconds ahead. When it has run, the
/// head has checked its deadlines.
fn a_deadline_comes(cluster: &Cluster, ahead: i64) {
    let begin = Timestamp::now().checked_add((ahead + 1).seconds()).unwrap().to_string();
    let job = cluster.submit(&["--begin", &begin], "true");
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
}

#[test]
fn a_head_s_clock_that_steps_gives_up_no_node_early_and_lets_nothing_wait_forever() {
    let folder = tempfile::tempdir().unwrap();
    let clock = FakeClock::right(folder.path());
    let mut cluster = Cluster::with_head_in(folder, &clock.environment(), &["--policy", "fifo"], &[]);
    ["host:1", "host:1"].iter().for_each(|devices| cluster.add_worker(devices));
    let log = cluster.attempt_log("log");
    let long = cluster.submit(&["--time", "2h"], &log.script());
    log.until_started(1, 1);
    cluster.kill_worker(0);
    cluster.until_node("node0", "UNREACHABLE");
    clock.set(HOUR);
    a_deadline_comes(&cluster, HOUR);
    assert_eq!(cluster.node_state("node0"), "UNREACHABLE");
    cluster.restart_worker(0);
    cluster.until_node("node0", "UP");
    // The head's time does not go back; but it goes on.
    clock.set(-HOUR);
    a_deadline_comes(&cluster, HOUR);
    cluster.kill_head();
    cluster.restart_head();
    cluster.until_node("node0", "UP");
    a_deadline_comes(&cluster, HOUR);
    log.go();
    completed_at_first(&cluster, &long, &log);
}

/// Half a year and more: certificates of release 0.1 were not valid yet, or any more.
#[test]
fn no_clock_keeps_head_workers_and_clients_apart() {
    const YEAR: i64 = 365 * 24 * HOUR;
    let folder = tempfile::tempdir().unwrap();
    let clock = FakeClock::right(folder.path());
    clock.set(YEAR / 2);
    let mut cluster = Cluster::with_head_in(folder, &clock.environment(), &["--policy", "fifo"], &[]);
    // The clock of the head is right again, without a restart.
    clock.set(0);
    cluster.add_worker("host:1");
    let first = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&first)["state"], "COMPLETED");
    let [behind, ahead] = ["behind", "ahead"].map(|name| {
        std::fs::create_dir(cluster.path(name)).unwrap();
        FakeClock::right(std::path::Path::new(&cluster.path(name)))
    });
    behind.set(-50 * YEAR);
    ahead.set(50 * YEAR);
    for (worker, clock) in [(1, &behind), (2, &ahead)] {
        cluster.add_worker_in(&clock.environment(), "host:1", &[]);
        cluster.until_node(&format!("node{worker}"), "UP");
    }
    cluster.kill_head();
    cluster.restart_head();
    (0..3).for_each(|worker| cluster.until_node(&format!("node{worker}"), "UP"));
}
