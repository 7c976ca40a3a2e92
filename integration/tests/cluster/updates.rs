//! Updates of waiting jobs, and drains with a reason and a deadline.

use crate::kit::*;

#[test]
fn a_waiting_job_gets_a_new_priority_and_time_limit() {
    let cluster = Cluster::start(&["host:1"]);
    let running = cluster.submit(&[], "sleep 600");
    cluster.until_state(&running, "RUNNING");
    let [first, second] = [(); 2].map(|()| cluster.submit(&["--time", "1h"], "true"));
    let updated = cluster.ok(&["update", &second, "--priority", "-1", "--time", "2h"]);
    assert_eq!(updated, format!("Updated job {second}: priority -1, time limit 2 h 0 min\n"));
    let shown = cluster.ok(&["show", &second]);
    assert!(shown.contains("priority -1") && shown.contains("2 h 0 min"), "{shown}");
    assert!(cluster.ok(&["explain", &second]).contains("updated: priority -1"));
    let refused = cluster.run(&["update", &running, "--priority", "-1"]);
    assert!(refused.code != 0 && refused.stderr.contains("only jobs that wait"), "{}", refused.stderr);
    let nothing = cluster.run(&["update", &second]);
    assert_eq!(nothing.code, 2, "{}", nothing.stderr);
    let user = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    let stranger = cluster.run(&["update", &first, "--priority", "-1", "--token-file", &user]);
    assert_eq!(stranger.code, 77, "{}", stranger.stderr);
    cluster.ok(&["cancel", &running]);
    cluster.end(&first);
    cluster.end(&second);
}

#[test]
fn a_drain_has_a_reason_and_requeues_at_its_deadline() {
    let mut cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&[], "test $COHABIT_ATTEMPT = 2 || sleep 600");
    cluster.until_state(&job, "RUNNING");
    cluster.ok(&["worker", "drain", "node0", "--reason", "new power supply", "--deadline", "2s"]);
    let nodes = cluster.ok(&["nodes"]);
    assert!(nodes.contains("DRAINING") && nodes.contains("new power supply"), "{nodes}");
    until("the node is drained", || cluster.node_state("node0") == "DRAINED");
    assert_eq!(cluster.state(&job), "PENDING");
    // The reason survives the head.
    cluster.kill_head();
    cluster.restart_head();
    until("the node is back", || cluster.node_state("node0") == "DRAINED");
    assert_eq!(cluster.json(&["nodes"])["nodes"][0]["drain"]["reason"], "new power supply");
    cluster.ok(&["worker", "resume", "node0"]);
    cluster.completed_in(2, &job);
    assert!(!cluster.ok(&["nodes"]).contains("power supply"));
}
