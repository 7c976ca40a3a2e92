//! Nodes that are reserved for maintenance or for some users.

use crate::kit::*;

#[test]
fn jobs_that_would_run_into_maintenance_wait_also_after_a_restart_of_the_head() {
    let mut cluster = Cluster::start(&["host:2"]);
    let made = cluster.ok(&[
        "reserve",
        "--maintenance",
        "--nodes",
        "node0",
        "--from",
        "now+2h",
        "--for",
        "4h",
        "--reason",
        "new disks",
    ]);
    assert!(made.starts_with("Reservation 1: maintenance of node0 from "), "{made}");
    let without_limit = cluster.submit(&[], "true");
    let short = cluster.submit(&["--time", "10m"], "true");
    assert_eq!(cluster.end(&short)["state"], "COMPLETED");
    let record = cluster.show(&without_limit);
    assert_eq!((&record["state"], &record["reason_code"]), (&"PENDING".into(), &"waiting_for_nodes".into()));
    let explained = cluster.ok(&["explain", &without_limit]);
    assert!(explained.contains("Reservation 1 (maintenance: new disks) keeps it off node0"), "{explained}");
    let reserved = cluster.json(&["reserve", "list"]);
    let first = &reserved["reservations"][0];
    assert_eq!(
        (&first["maintenance"], &first["by"]),
        (&true.into(), &cluster.json(&["token", "list"])["tokens"][0]["name"])
    );
    cluster.kill_head();
    cluster.restart_head();
    assert_eq!(cluster.json(&["reserve", "list"])["reservations"], reserved["reservations"]);
    assert!(cluster.ok(&["nodes"]).contains("reservation 1: maintenance of node0 from "));
    assert_eq!(cluster.show(&without_limit)["state"], "PENDING");
    cluster.ok(&["reserve", "cancel", "1"]);
    assert_eq!(cluster.end(&without_limit)["state"], "COMPLETED");
    assert_eq!(cluster.ok(&["reserve", "list", "--output", "quiet"]), "");
}

#[test]
fn maintenance_stops_what_runs_and_gives_the_node_back() {
    let cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&["--name", "long"], "sleep 1000");
    cluster.until_state(&job, "RUNNING");
    let reserve = ["reserve", "--maintenance", "--nodes", "node0", "--for", "1h"];
    let refused = cluster.run(&reserve);
    assert_eq!(refused.code, 65, "{}", refused.stderr);
    assert!(refused.stderr.contains("1 job may still run there when the reservation begins (1)"));
    assert!(refused.stderr.contains("--stop-jobs"), "{}", refused.stderr);
    cluster.ok(&[&reserve[..], &["--stop-jobs"]].concat());
    until("the node is drained", || cluster.json(&["nodes"])["nodes"][0]["state"] == "DRAINED");
    assert_eq!(cluster.show(&job)["state"], "PENDING");
    cluster.ok(&["reserve", "cancel", "1"]);
    cluster.until_state(&job, "RUNNING");
    assert_eq!(cluster.show(&job)["attempts"].as_array().unwrap().len(), 2);
    cluster.ok(&["cancel", &job]);
    cluster.end(&job);
}

#[test]
fn a_node_that_is_reserved_for_a_user_runs_their_jobs_alone() {
    let cluster = Cluster::start(&["host:2"]);
    let tokens = ["ada", "ben"].map(|name| cluster.token(name, &["--role", "user", "--name", name]));
    cluster.ok(&["reserve", "--user", "ben", "--nodes", "node0"]);
    let of_ada = cluster.submit(&["--token-file", &tokens[0]], "true");
    let of_ben = cluster.submit(&["--token-file", &tokens[1]], "true");
    assert_eq!(cluster.end(&of_ben)["state"], "COMPLETED");
    let reason = cluster.show(&of_ada)["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("node0 is (cohabit reserve list)"), "{reason}");
    cluster.ok(&["reserve", "cancel", "1"]);
    assert_eq!(cluster.end(&of_ada)["state"], "COMPLETED");
}

#[test]
fn a_drain_by_a_time_is_undone_by_resuming_the_node() {
    let cluster = Cluster::start(&["host:1"]);
    let told = cluster.ok(&["worker", "drain", "node0", "--by", "now+3h"]);
    assert!(told.contains("is drained at"), "{told}");
    let job = cluster.submit(&[], "true");
    until("the job waits for the node", || {
        cluster.show(&job)["reason"].as_str().is_some_and(|why| why.contains("node0 is reserved in 2 h"))
    });
    cluster.ok(&["worker", "resume", "node0"]);
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
}

#[test]
fn what_cannot_be_reserved_is_told_with_the_remedy() {
    let cluster = Cluster::start(&["host:1"]);
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    cluster.ok(&["reserve", "--maintenance", "--nodes", "node0", "--from", "now+1h", "--for", "1h"]);
    let cases: [(&[&str], i32, &str); 8] = [
        (&["--nodes", "node0"], 2, "--maintenance"),
        (&["--maintenance"], 2, "--nodes"),
        (&["--maintenance", "--user", "ada", "--nodes", "node0"], 2, "cannot be used with"),
        (&["--maintenance", "--nodes", "gpu9"], 66, "the nodes are node0"),
        (&["--maintenance", "--nodes", "node0", "--from", "2020-01-01 18:00"], 2, "leave --from out"),
        (&["--maintenance", "--nodes", "node0", "--from", "soon"], 2, "now+1h"),
        (&["--maintenance", "--nodes", "node0", "--for", "3h"], 65, "cohabit reserve cancel 1"),
        (&["--maintenance", "--nodes", "node0", "--token-file", &ada], 77, "only an admin token"),
    ];
    for (arguments, code, why) in cases {
        let ran = cluster.run(&[&["reserve"], arguments].concat());
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(why), "{arguments:?}: {}", ran.stderr);
    }
    let cancelled = cluster.run(&["reserve", "cancel", "9"]);
    assert_eq!(cancelled.code, 66, "{}", cancelled.stderr);
    assert_eq!(cluster.json(&["reserve", "list"])["reservations"].as_array().unwrap().len(), 1);
}
