//! Output of jobs, while they run and afterwards.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::kit::*;

#[test]
fn logs_are_followed_while_the_job_runs_and_end_with_it() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let job =
        cluster.submit(&[], &format!("echo before; until test -e {go}; do sleep 0.05; done; echo after"));
    let mut follow = cluster.command(&["logs", "-f", &job]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "before");
    std::fs::write(&go, "").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "after");
    assert!(lines.next().is_none());
    assert!(follow.wait().unwrap().success());
}

#[test]
fn output_survives_the_job_the_head_and_the_worker_daemon() {
    let mut cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&[], "seq 1 1000; printf 'no newline'");
    cluster.end(&job);
    cluster.kill_head();
    cluster.kill_worker(0);
    cluster.restart_head();
    cluster.restart_worker(0);
    until("the worker is back", || cluster.json(&["nodes"])["nodes"][0]["state"] == "UP");
    let expected: String = (1..=1000).map(|n| format!("{n}\n")).chain(["no newline".into()]).collect();
    assert_eq!(cluster.ok(&["logs", &job]), expected);
    assert_eq!(cluster.ok(&["logs", "--tail", "2", &job]), "1000\nno newline");
}

#[test]
fn binary_output_comes_back_byte_for_byte() {
    let cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&[], r"printf '\000\377\001\r\n\033[1m'");
    cluster.end(&job);
    let output = cluster.command(&["logs", &job]).output().unwrap();
    assert_eq!(output.stdout, b"\x00\xff\x01\r\n\x1b[1m");
}

#[test]
fn a_slow_reader_never_slows_a_job() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let script = format!("until test -e {go}; do sleep 0.05; done; yes 0123456789 | head -c 20000000");
    let job = cluster.submit(&[], &script);
    // A follower that never reads its pipe.
    let mut reader = cluster.command(&["logs", "-f", &job]).stdout(Stdio::piped()).spawn().unwrap();
    std::fs::write(&go, "").unwrap();
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    reader.kill().unwrap();
    reader.wait().unwrap();
}

#[test]
fn another_users_output_is_not_shown() {
    let cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&[], "echo private");
    cluster.end(&job);
    std::fs::write(
        cluster.folder().join("bob"),
        cluster.ok(&["token", "create", "--role", "user", "--name", "bob"]),
    )
    .unwrap();
    nix::sys::stat::fchmodat(
        nix::fcntl::AT_FDCWD,
        &cluster.folder().join("bob"),
        nix::sys::stat::Mode::S_IRUSR,
        nix::sys::stat::FchmodatFlags::FollowSymlink,
    )
    .unwrap();
    let ran = cluster.run(&["logs", "--token-file", "bob", &job]);
    assert_eq!(ran.code, 77, "{}", ran.stderr);
    assert!(!ran.stdout.contains("private"));
}
