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
fn a_failed_job_is_explained_with_the_end_of_its_standard_error() {
    let mut cluster = Cluster::start(&["host:1"]);
    let job = cluster.submit(&[], r"echo out; seq 1 20 >&2; printf '\033[2Jlast' >&2; exit 3");
    cluster.end(&job);
    let explained = cluster.ok(&["explain", &job]);
    let lines = (12..=20).map(|line| format!("  {line}\n")).collect::<String>() + "  \\u{1b}[2Jlast\n";
    assert!(explained.contains(&format!(":\n{lines}\n")), "{explained}");
    assert!(explained.contains("Last lines of standard error of rank 0 on node "), "{explained}");
    let stderr = &cluster.json(&["explain", &job])["stderr"];
    assert_eq!((stderr["lines"].as_array().unwrap().len(), &stderr["rank"]), (10, &0.into()));

    cluster.kill_worker(0);
    until("the worker is missed", || cluster.json(&["nodes"])["nodes"][0]["state"] == "UNREACHABLE");
    let explained = cluster.ok(&["explain", &job]);
    assert!(explained.contains("Standard error of rank 0 on node "), "{explained}");
    assert!(explained.contains("cannot be shown: "), "{explained}");
    assert!(explained.contains("It exited with code 3"), "{explained}");
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

#[test]
fn the_output_of_an_array_and_of_several_jobs_is_one_with_the_job_of_each_line() {
    let cluster = Cluster::start(&["host:4"]);
    let array = cluster.submit(&["--array", "1-3"], "echo out $COHABIT_ARRAY_INDEX; echo err >&2");
    cluster.end(&array);
    // Lines are in the order of time.
    let other = cluster.submit(&[], "printf 'no end'");
    cluster.end(&other);
    let printed = cluster.run(&["logs", &array]);
    let mut lines: Vec<&str> = printed.stdout.lines().collect();
    lines.sort_unstable();
    let expected: Vec<String> = (1..=3).map(|index| format!("[{array}.{index}] out {index}")).collect();
    assert_eq!(lines, expected, "{}", printed.stdout);
    assert_eq!(printed.stderr.lines().filter(|line| line.ends_with("] err")).count(), 3);
    let both = cluster.ok(&["logs", &format!("{array}.2"), &other]);
    assert_eq!(both, format!("[{array}.2] out 2\n[{other}] no end\n"));
    let documents = cluster.ok(&["logs", &array, "--output", "json"]);
    let documents: Vec<serde_json::Value> =
        documents.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(documents.len(), 6);
    assert!(documents.iter().any(|it| it["job"] == format!("{array}.1") && it["text"] == "out 1"));
}

#[test]
fn an_array_is_followed_until_all_members_have_ended() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let script =
        format!("echo begin; until test -e {go}; do sleep 0.05; done; echo end of $COHABIT_ARRAY_INDEX");
    let array = cluster.submit(&["--array", "0-2%1"], &script);
    let mut follow = cluster.command(&["logs", "-f", &array]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), format!("[{array}.0] begin"));
    std::fs::write(&go, "").unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(follow.wait().unwrap().success());
    let (begins, ends): (Vec<&String>, Vec<&String>) = rest.iter().partition(|line| line.ends_with("begin"));
    assert_eq!((begins.len(), ends.len()), (2, 3), "{rest:?}");
    assert!(rest.contains(&format!("[{array}.2] end of 2")), "{rest:?}");
}

/// More members run than are followed at once.
#[test]
fn a_wide_array_is_followed_in_parts_and_says_so() {
    let cluster = Cluster::start(&["host:80"]);
    let go = cluster.path("go");
    let script = format!("echo here; until test -e {go}; do sleep 0.1; done");
    let array = cluster.submit(&["--array", "1-70"], &script);
    let all_run = || {
        let states = cluster.show(&array)["array"]["states"].clone();
        states["RUNNING"] == 70
    };
    until("all members run", all_run);
    let mut follow = cluster.command(&["logs", "-f", &array]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut messages = BufReader::new(follow.stderr.take().unwrap()).lines();
    let told = messages.next().unwrap().unwrap();
    assert!(told.contains("at most 64 jobs are followed at once; 6 more run"), "{told}");
    std::fs::write(&go, "").unwrap();
    let lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.filter(|line| line.ends_with("] here")).count(), 70);
    assert!(follow.wait().unwrap().success());
}

#[test]
fn a_log_that_lost_its_begin_says_so_first() {
    let mut cluster = Cluster::start(&[]);
    cluster.add_worker_in(&[("COHABIT_LOG_LIMIT", "100K")], "host:1", &[]);
    let job = cluster.submit(&[], "seq 1 1000000");
    cluster.end(&job);
    let printed = cluster.run(&["logs", &job]);
    assert!(printed.stdout.ends_with("\n1000000\n"), "{} bytes", printed.stdout.len());
    assert!(printed.stderr.contains("MiB of older output are missing"), "{}", printed.stderr);
    let tail = cluster.run(&["logs", "--tail", "2", &job]);
    assert_eq!((tail.stdout.as_str(), tail.stderr.as_str()), ("999999\n1000000\n", ""));
}
