//! Changes to jobs that are selected by state, user and name.

use crate::kit::*;

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

#[test]
fn jobs_are_selected_by_state_and_name() {
    let cluster = Cluster::start(&["host:1"]);
    let running = cluster.submit(&["--name", "sweep"], "sleep 600");
    until("it runs", || cluster.state(&running) == "RUNNING");
    let array = cluster.submit(&["--name", "sweep", "--array", "1-3"], "true");
    let other = cluster.submit(&["--name", "other"], "true");
    let held = cluster.ok(&["hold", "--name", "sweep"]);
    assert_eq!(lines(&held), [format!("Held job {array}")]);
    assert_eq!(cluster.ok(&["release", "--all", "--output", "quiet"]).trim(), array);

    let cancelled = cluster.ok(&["cancel", "--state", "PENDING", "--name", "sweep"]);
    assert_eq!(lines(&cancelled), [format!("Cancelled job {array}")]);
    assert_eq!((cluster.state(&running), cluster.state(&other)), ("RUNNING".into(), "PENDING".into()));
    let nothing = cluster.run(&["cancel", "--state", "PENDING", "--name", "sweep"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (0, ""));
    assert_eq!(nothing.stderr, "no job matches: there is nothing to cancel\n");
    let none = cluster.json(&["cancel", "--name", "nobody"]);
    assert_eq!(none["changes"], serde_json::json!([]));

    let all = cluster.ok(&["cancel", "--force", "--all"]);
    assert_eq!(lines(&all).len(), 2, "{all}");
    cluster.end(&running);
    cluster.end(&other);
    assert_eq!(
        cluster.ok(&["requeue", "--state", "CANCELLED", "--name", "other"]),
        format!("Requeued job {other}\n")
    );
}

#[test]
fn users_select_their_own_jobs_and_admins_those_of_anybody() {
    let mut cluster = Cluster::start(&[]);
    cluster.add_worker_with("host:1", &["--allow-shared-account"]);
    let bob = cluster.token("bob", &["--role", "user", "--name", "bob"]);
    let own = cluster.submit(&["--hold"], "true");
    let submit = ["submit", "--token-file", &bob, "--output", "quiet", "--hold", "--", "true"];
    let bobs = cluster.ok(&submit).trim().to_owned();
    let admin = cluster.json(&["show", &own])["user"].as_str().unwrap().to_owned();
    let refused = cluster.run(&["cancel", "--token-file", &bob, "--user", &admin]);
    assert_eq!(refused.code, 77, "{}", refused.stderr);
    assert_eq!(cluster.ok(&["cancel", "--token-file", &bob, "--all"]), format!("Cancelled job {bobs}\n"));
    assert_eq!(cluster.state(&own), "HELD");
    let bobs = cluster.ok(&submit).trim().to_owned();
    assert_eq!(cluster.ok(&["cancel", "--user", "bob"]), format!("Cancelled job {bobs}\n"));
    assert_eq!(cluster.state(&own), "HELD");
}

#[test]
fn a_change_needs_jobs_or_a_selection_and_not_both() {
    let cluster = Cluster::start(&[]);
    let job = cluster.submit(&["--hold"], "true");
    for (arguments, advice) in [
        (&["cancel"][..], "there are no jobs to cancel: name them"),
        (&["cancel", &job, "--all"], "jobs are either named or selected: leave out"),
    ] {
        let refused = cluster.run(arguments);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains(advice), "{}", refused.stderr);
    }
    assert_eq!(cluster.state(&job), "HELD");
}
