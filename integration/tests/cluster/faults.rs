//! Daemons that die while jobs run.

use crate::kit::*;

#[test]
fn a_killed_head_forgets_nothing_and_running_jobs_never_notice() {
    let mut cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let running = cluster
        .submit(&[], &format!("until test -e {go}; do sleep 0.05; done; echo attempt $COHABIT_ATTEMPT"));
    cluster.until_state(&running, "RUNNING");
    let waiting = cluster.submit(&["--name", "waits"], "echo ran");
    cluster.kill_head();
    cluster.restart_head();
    until("the worker is back", || cluster.json(&["nodes"])["nodes"][0]["state"] == "UP");
    assert_eq!((cluster.state(&running).as_str(), cluster.state(&waiting).as_str()), ("RUNNING", "PENDING"));
    std::fs::write(&go, "").unwrap();
    assert_eq!(cluster.end(&running)["attempt"], 1);
    assert_eq!(cluster.end(&waiting)["state"], "COMPLETED");
    assert_eq!(cluster.ok(&["logs", &running]), "attempt 1\n");
}

#[test]
fn what_was_acknowledged_is_known_after_the_head_was_killed_at_once() {
    let mut cluster = Cluster::start(&[]);
    let jobs: Vec<String> = (0..5).map(|_| cluster.submit(&["--hold"], "true")).collect();
    cluster.kill_head();
    cluster.restart_head();
    for job in &jobs {
        assert_eq!(cluster.state(job), "HELD");
    }
}

#[test]
fn a_killed_worker_daemon_finds_its_ranks_again() {
    let mut cluster = Cluster::start(&["host:2"]);
    let go = cluster.path("go");
    let waiting = |name: &str, end: &str| {
        let here = cluster.path(name);
        cluster.submit(&[], &format!("touch {here}; until test -e {go}; do sleep 0.05; done; {end}"))
    };
    let (running, ends_meanwhile) = (waiting("one", "exit 5"), waiting("other", "echo done"));
    // A job that was placed a moment ago may not have reached its worker.
    cluster.until_file("one");
    cluster.until_file("other");
    cluster.kill_worker(0);
    std::fs::write(&go, "").unwrap();
    cluster.restart_worker(0);
    let (first, second) = (cluster.end(&running), cluster.end(&ends_meanwhile));
    assert_eq!((first["exit_code"].as_i64(), first["attempt"].as_u64()), (Some(5), Some(1)), "{first}");
    assert_eq!(
        (second["state"].as_str(), second["attempt"].as_u64()),
        (Some("COMPLETED"), Some(1)),
        "{second}"
    );
}

#[test]
fn a_worker_that_is_stopped_leaves_its_jobs_running() {
    let mut cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let job = cluster.submit(&[], &format!("until test -e {go}; do sleep 0.05; done"));
    cluster.until_state(&job, "RUNNING");
    cluster.stop_worker(0);
    until("the head misses it", || cluster.json(&["nodes"])["nodes"][0]["state"] == "UNREACHABLE");
    cluster.restart_worker(0);
    std::fs::write(&go, "").unwrap();
    assert_eq!(cluster.end(&job)["attempt"], 1);
}

#[test]
fn a_drained_node_takes_no_new_jobs() {
    let cluster = Cluster::start(&["host:1", "host:1"]);
    cluster.ok(&["worker", "drain", "node0"]);
    let job = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&job)["nodes"][0], "node1");
    let states: Vec<String> = cluster.json(&["nodes"])["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["state"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(states, ["DRAINED", "UP"]);
}

#[test]
fn a_corrupt_journal_is_refused_and_left_as_it_is() {
    let mut cluster = Cluster::start(&[]);
    cluster.submit(&["--hold"], "true");
    cluster.kill_head();
    let journal = cluster.folder().join("head/journal.sqlite");
    std::fs::remove_file(cluster.folder().join("head/journal.sqlite-wal")).unwrap_or_default();
    std::fs::write(&journal, b"this is no journal").unwrap();
    let output =
        cluster.command(&["head", "start", "--listen", "127.0.0.1:0", "--state", "head"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr.contains("journal.sqlite"), "{stderr}");
    assert_eq!(std::fs::read(&journal).unwrap(), b"this is no journal");
}
