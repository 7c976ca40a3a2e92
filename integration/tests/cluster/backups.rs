//! A head that lost its disk comes back from a backup: what users, workers and scripts meet then.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::kit::*;

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

#[test]
fn a_restored_head_finishes_what_the_backup_knows_and_stops_what_it_does_not() {
    let mut cluster = Cluster::start(&["host:3"]);
    let backup = cluster.path("head.tar");
    let go = cluster.path("go");
    let wait = format!("until test -e {go}; do sleep 0.05; done");
    let ended = cluster.submit(&["--name", "early"], "echo early");
    cluster.end(&ended);
    let failed = cluster.submit(&[], "exit 3");
    cluster.end(&failed);
    let token = cluster.token("ada.token", &["--role", "user", "--name", "ada"]);
    let array = cluster.submit(&["--array", "0-3%1"], &format!("{wait}; echo member"));
    cluster.until_state(&format!("{array}.0"), "RUNNING");
    // Jobs are accepted while the backup is made.
    let accepted: Vec<String> = std::thread::scope(|scope| {
        let submit = || (0..8).map(|_| cluster.submit(&["--hold"], "true")).collect();
        let accepted = scope.spawn(submit);
        let made = cluster.json(&["head", "backup", "head.tar"]);
        assert_eq!(made["file"], backup);
        accepted.join().unwrap()
    });
    assert_eq!(fs::metadata(&backup).unwrap().permissions().mode() & 0o777, 0o600);
    let pid = cluster.path("pid");
    let unknown = cluster.submit(&["--name", "late"], &format!("echo $$ > {pid}; sleep 600"));
    cluster.until_file("pid");
    let restored = cluster.lose_and_restore(&backup);
    let next = restored["next_job"].as_u64().unwrap();
    assert!(number(&unknown) + 1_000_000 < next, "{restored}");
    cluster.until_node("node0", "UP");
    // The worker ends the job that this head does not know, and nobody takes it for another one.
    let late = cluster.read("pid").trim().to_owned();
    let limit = Duration::from_secs(60);
    until_within(limit, "the unknown job is stopped", || !fs::exists(format!("/proc/{late}")).unwrap());
    assert_ne!(cluster.run(&["show", &unknown]).code, 0);
    assert_eq!(cluster.state(&format!("{array}.0")), "RUNNING", "what the backup knows runs on");
    fs::write(&go, "").unwrap();
    assert_eq!(cluster.end(&array)["state"], "COMPLETED");
    assert_eq!(cluster.show(&format!("{array}.0"))["attempt"], 1, "it was adopted");
    // History, logs, and the jobs that were accepted before the backup.
    assert_eq!(cluster.show("early")["state"], "COMPLETED");
    assert_eq!(
        (cluster.ok(&["logs", &ended]), cluster.show(&failed)["exit_code"].clone()),
        ("early\n".into(), 3.into())
    );
    let known = restored["last_job"].as_u64().unwrap();
    for job in accepted.iter().filter(|job| number(job) <= known) {
        assert_eq!(cluster.state(job), "HELD");
    }
    let new = cluster.ok(&["submit", "--output", "quiet", "--token-file", &token, "--", "true"]);
    assert_eq!(number(new.trim()), next);
    assert_eq!(cluster.show(new.trim())["user"], "ada", "tokens still work");
    cluster.end(new.trim());
}

#[test]
fn an_attempt_that_the_backup_does_not_know_is_not_mistaken_for_the_next_one() {
    let mut cluster = Cluster::start(&["host:1"]);
    let attempts = cluster.path("attempts");
    let job = cluster.submit(&[], &format!("echo $COHABIT_ATTEMPT >> {attempts}; sleep 600"));
    cluster.until_state(&job, "RUNNING");
    cluster.until_file("attempts");
    let backup = cluster.path("head.tar");
    cluster.ok(&["head", "backup", &backup]);
    cluster.ok(&["requeue", &job]);
    until("the second attempt runs", || cluster.read("attempts") == "1\n2\n");
    cluster.lose_and_restore(&backup);
    until("a third attempt runs", || cluster.read("attempts").lines().count() == 3);
    let third: u64 = cluster.read("attempts").lines().last().unwrap().parse().unwrap();
    assert!(third > 1_000, "{third}");
    assert_eq!(cluster.show(&job)["attempt"], third);
    cluster.ok(&["cancel", &job]);
    assert_eq!(cluster.end(&job)["state"], "CANCELLED");
}

#[test]
fn a_job_that_ended_after_the_backup_runs_again() {
    let mut cluster = Cluster::start(&["host:1"]);
    let (go, ran) = (cluster.path("go"), cluster.path("ran"));
    let script = format!("echo $COHABIT_ATTEMPT >> {ran}; until test -e {go}; do sleep 0.05; done");
    let job = cluster.submit(&[], &script);
    cluster.until_file("ran");
    cluster.until_state(&job, "RUNNING");
    let backup = cluster.path("head.tar");
    cluster.ok(&["head", "backup", &backup]);
    fs::write(&go, "").unwrap();
    assert_eq!(cluster.end(&job)["attempt"], 1);
    // The worker has heard that the head knows the end.
    let after = cluster.submit(&[], "true");
    cluster.end(&after);
    cluster.lose_and_restore(&backup);
    let ended = cluster.end(&job);
    assert_eq!(ended["state"], "COMPLETED", "{ended}");
    assert_eq!(cluster.read("ran").lines().count(), 2, "{ended}");
    assert!(ended["attempt"].as_u64().unwrap() > 1_000, "{ended}");
}

#[test]
fn the_same_backup_restored_twice_gives_no_number_twice() {
    let mut cluster = Cluster::start(&[]);
    let backup = cluster.path("head.tar");
    cluster.submit(&["--hold"], "true");
    cluster.ok(&["head", "backup", &backup]);
    let mut numbers = BTreeSet::new();
    for _ in 0..3 {
        // Numbers go on by the time, in whole seconds.
        let begin = std::time::Instant::now();
        until("a second has passed", || begin.elapsed() > Duration::from_secs(1));
        cluster.lose_and_restore(&backup);
        numbers.extend((0..5).map(|_| number(&cluster.submit(&["--hold"], "true"))));
    }
    assert_eq!(numbers.len(), 15);
}

#[test]
fn mistakes_are_refused_and_change_nothing() {
    let cluster = Cluster::start(&[]);
    let backup = cluster.path("head.tar");
    let made = cluster.ok(&["head", "backup", "head.tar"]);
    assert!(made.contains(&format!("cohabit head restore {backup} --state DIR")), "{made}");
    let refused = |arguments: &[&str], expected: &str| {
        let ran = cluster.run(arguments);
        assert!(ran.code != 0 && ran.stderr.contains(expected), "{arguments:?}: {}", ran.stderr);
    };
    refused(&["head", "backup", "head.tar"], "--force");
    cluster.ok(&["head", "backup", "head.tar", "--force"]);
    refused(&["head", "backup", "head/inside.tar"], "inside the state directory");
    refused(&["head", "restore", "head.tar", "--state", "head"], "another head uses the state directory");
    fs::create_dir(cluster.folder().join("full")).unwrap();
    fs::write(cluster.folder().join("full/file"), "").unwrap();
    refused(&["head", "restore", "head.tar", "--state", "full"], "is not empty");
    fs::write(cluster.folder().join("foreign.tar"), "no archive").unwrap();
    refused(&["head", "restore", "foreign.tar", "--state", "new"], "Nothing was changed");
    assert!(!cluster.folder().join("new").exists());
    cluster.ok(&["list"]);
}
