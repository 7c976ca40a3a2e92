//! Jobs that have left the head's memory for its archive, as users meet them.

use crate::kit::{Cluster, until};

/// Waits until these jobs, and no others, are in the archive.
fn until_archived(cluster: &Cluster, jobs: &[&String]) {
    let journal = rusqlite::Connection::open(cluster.folder().join("head/journal.sqlite")).unwrap();
    let count = || {
        let wanted = "SELECT count(DISTINCT number) FROM archive";
        journal.query_row(wanted, [], |row| row.get::<_, u32>(0)).unwrap()
    };
    until(&format!("the jobs {jobs:?} are archived"), || count() as usize == jobs.len());
}

#[test]
fn a_job_that_left_memory_is_explained_depended_on_and_queued_again_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let environment = [("COHABIT_ARCHIVE_AFTER", "2s")];
    let mut cluster = Cluster::with_head_in(folder, &environment, &["--policy", "fifo"], &[]);
    cluster.add_worker("host:2");
    let again = cluster.path("again");
    let script = format!("echo \"$LEVEL\"; test -e {again}");
    let job = cluster.submit(&["--name", "flaky", "--env", "LEVEL=7"], &script);
    let array = cluster.submit(&["--array", "0-2"], "exit $COHABIT_ARRAY_INDEX");
    cluster.end(&job);
    cluster.end(&array);
    let before = (cluster.ok(&["explain", &job]), cluster.ok(&["explain", &format!("{array}.2")]));
    until_archived(&cluster, &[&job, &array]);
    let explained =
        |cluster: &Cluster| (cluster.ok(&["explain", &job]), cluster.ok(&["explain", &format!("{array}.2")]));
    assert_eq!(explained(&cluster), before);
    assert_eq!(cluster.ok(&["logs", &job]), "7\n");
    assert_eq!(cluster.run(&["wait", &job, &array]).code, 1);
    assert_eq!(cluster.state("flaky"), "FAILED");
    assert_eq!(cluster.state(&format!("{array}.0")), "COMPLETED");
    cluster.kill_head();
    cluster.restart_head();
    // It has the output of which `explain` shows the end.
    cluster.until_node("node0", "UP");
    assert_eq!(explained(&cluster), before);
    let after = cluster.submit(&["--depends-on", &format!("{array}.0")], "true");
    assert_eq!(cluster.end(&after)["state"], "COMPLETED");
    let never = cluster.submit(&["--depends-on", &job], "true");
    assert_eq!(cluster.end(&never)["state"], "CANCELLED");
    let refused = cluster.run(&["cancel", &job]);
    assert!(refused.stderr.contains("it is FAILED"), "{}", refused.stderr);
    std::fs::write(&again, "").unwrap();
    cluster.ok(&["requeue", &job]);
    cluster.completed_in(2, &job);
    assert_eq!(cluster.ok(&["logs", &job]), "7\n");
    cluster.ok(&["requeue", &format!("{array}.1")]);
    let member = cluster.end(&format!("{array}.1"));
    assert_eq!((&member["state"], &member["attempt"]), (&"FAILED".into(), &2.into()));
    assert_eq!(cluster.show(&array)["array"]["members"], 3);
}
