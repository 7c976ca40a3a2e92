//! The newest jobs of a user: `last` and `history`, and names in place of numbers.

use crate::kit::*;

#[test]
fn history_has_the_newest_jobs_of_the_user_with_times_and_exit_codes() {
    let cluster = Cluster::start(&["host:1"]);
    let nothing = cluster.run(&["last"]);
    assert!(nothing.code == 66 && nothing.stderr.contains("submitted no jobs"), "{}", nothing.stderr);
    assert_eq!(cluster.ok(&["history", "--output", "quiet"]), "");
    let jobs = ["exit 3", "true", "kill -KILL $$"].map(|script| cluster.submit(&[], script));
    for job in &jobs {
        cluster.end(job);
    }
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    let hers = cluster.ok(&["submit", "--token-file", &ada, "--output", "quiet", "--hold", "--", "true"]);
    let hers = hers.trim();

    assert_eq!(cluster.ok(&["history", "--output", "quiet"]).lines().collect::<Vec<_>>(), jobs);
    let newest = cluster.ok(&["history", "--limit", "2", "--since", "1h", "--output", "quiet"]);
    assert_eq!(newest.lines().collect::<Vec<_>>(), jobs[1..]);
    assert_eq!(cluster.ok(&["history", "--since", "0s", "--output", "quiet"]), "");
    let table = cluster.ok(&["history"]);
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert!(rows[0].contains("FAILED") && rows[0].contains(" 3 ") && rows[0].contains("exit 3"), "{table}");
    assert!(rows[2].contains("signal 9"), "{table}");
    let document = cluster.json(&["history"]);
    assert_eq!(document["jobs"][0]["exit_code"], 3);
    assert!(document["jobs"][0]["ended_at"].is_string());
    assert_eq!(cluster.ok(&["history", "--token-file", &ada, "--output", "quiet"]).trim(), hers);

    assert_eq!(cluster.ok(&["last", "--output", "quiet"]).trim(), jobs[2]);
    assert_eq!(cluster.json(&["last"])["state"], "FAILED");
    let line = cluster.ok(&["last", "--token-file", &ada]);
    assert!(line.starts_with(&format!("{hers} true HELD")) && line.lines().count() == 1, "{line}");
    let refused = cluster.run(&["history", "--limit", "0"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}

#[test]
fn a_name_stands_for_its_job_wherever_a_number_does() {
    let cluster = Cluster::start(&["host:1"]);
    let array = cluster.submit(&["--name", "grid", "--array", "0-1", "--hold"], "true");
    let other = cluster.submit(&["--name", "unwanted", "--hold"], "true");
    cluster.ok(&["cancel", "unwanted"]);
    assert_eq!(cluster.state(&other), "CANCELLED");
    for words in [
        &["show", "grid"][..],
        &["explain", "grid"],
        &["list", "--members-of", "grid"],
        &["update", "grid", "--time", "1h"],
        &["release", "grid"],
        &["wait", "grid"],
        &["logs", "grid"],
        &["metrics", "grid"],
        &["requeue", "grid"],
    ] {
        let ran = cluster.run(words);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.stderr);
    }
    let members = cluster.json(&["list", "--members-of", "@~1"]);
    assert_eq!(members["jobs"][1]["id"], format!("{array}.1"));
    let unknown = cluster.run(&["list", "--members-of", "other"]);
    assert!(unknown.code == 66 && unknown.stderr.contains("no job named 'other'"), "{}", unknown.stderr);
}
