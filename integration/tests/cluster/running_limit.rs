//! The limit on the jobs that one user runs at once.

use crate::kit::*;

/// A cluster with four slots whose users run at most one job at once.
fn limited() -> Cluster {
    let mut cluster = Cluster::with_head(&["--max-running-jobs", "1"], &[]);
    cluster.add_worker("host:4");
    cluster
}

fn submit_as(cluster: &Cluster, token: &str, flags: &[&str], script: &str) -> String {
    let token = ["--token-file", token];
    cluster.submit(&[&token[..], flags].concat(), script)
}

#[test]
fn jobs_beyond_the_limit_of_their_user_wait_and_hold_up_nobody() {
    let cluster = limited();
    let (ada, bob) = (
        cluster.token("ada", &["--role", "user", "--name", "ada"]),
        cluster.token("bob", &["--role", "user", "--name", "bob"]),
    );
    let script = format!("until test -e {}; do sleep 0.05; done", cluster.path("go"));
    let first = submit_as(&cluster, &ada, &[], &script);
    cluster.until_state(&first, "RUNNING");
    let large = submit_as(&cluster, &ada, &["--gpus", "4"], "true");
    let of_bob = submit_as(&cluster, &bob, &[], &script);
    cluster.until_state(&of_bob, "RUNNING");
    let shown = cluster.show(&large);
    assert_eq!(
        (&shown["state"], &shown["reason_code"]),
        (&"PENDING".into(), &"waiting_for_user_limit".into())
    );
    let explained = cluster.ok(&["explain", &large]);
    assert!(explained.contains("Its user runs 1 job, as many as max-running-jobs allows"), "{explained}");
    let of_admin: Vec<String> = (0..2).map(|_| cluster.submit(&[], &script)).collect();
    of_admin.iter().for_each(|job| cluster.until_state(job, "RUNNING"));
    std::fs::write(cluster.path("go"), "").unwrap();
    assert_eq!(cluster.end(&large)["state"], "COMPLETED");
}

#[test]
fn the_limit_holds_for_members_of_arrays_and_after_a_restart() {
    let mut cluster = limited();
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    let script = format!("until test -e {}; do sleep 0.05; done", cluster.path("go"));
    let array = submit_as(&cluster, &ada, &["--array", "0-2"], &script);
    cluster.until_state(&format!("{array}.0"), "RUNNING");
    cluster.kill_head();
    cluster.restart_head();
    let member = format!("{array}.1");
    until("the worker is back", || cluster.show(&member)["reason_code"] == "waiting_for_user_limit");
    cluster.ok(&["cancel", "--force", &format!("{array}.0")]);
    cluster.until_state(&member, "RUNNING");
    std::fs::write(cluster.path("go"), "").unwrap();
    assert_eq!(cluster.end(&array)["array"]["states"]["COMPLETED"], 2);
}
