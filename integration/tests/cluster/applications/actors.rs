//! Actors: their calls, their ends, and what is left of them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::launch::{kill_process, program};
use crate::kit::*;

#[test]
fn a_program_calls_its_actors_and_leaves_nothing() {
    let cluster = Cluster::start(&["host:1"]);
    let counted = cluster.application(&["count", "5"]);
    assert_eq!((counted.code, counted.stdout.as_str()), (0, "[1, 2, 3, 4, 5]\n"), "{}", counted.stderr);
    let passed = cluster.application(&["pass"]);
    let expected = "in order: true\npassed 6 6\nnot found nobody\n";
    assert_eq!((passed.code, passed.stdout.as_str()), (0, expected), "{}", passed.stderr);
    let failed = cluster.application(&["fail"]);
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert!(failed.stderr.contains("it was told to fail"), "{}", failed.stderr);
    until("all jobs have ended", || {
        cluster.jobs_of("", "RUNNING").is_empty() && cluster.jobs_of("", "PENDING").is_empty()
    });
    until("all processes are gone", || cluster.program_processes().is_empty());
    until("the program is gone from the worker", || !Path::new(&cluster.path("worker0/code/1")).exists());
}

#[test]
fn a_restart_says_so() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch(&["restart", &go]);
    assert_eq!(launch.line(), "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]");
    let process: i32 = launch.line().strip_prefix("process ").unwrap().parse().unwrap();
    cluster.until_file("go.waits");
    kill_process(process);
    assert_eq!(launch.line(), "Err(Restarted { ran: Unknown })");
    assert_eq!(launch.line(), "then 1");
    assert_eq!(launch.end().code, 0);
    assert_eq!(cluster.end("3")["attempt"], 2, "job 1 is the root, and job 2 its main");
}

#[test]
fn a_head_restart_is_not_noticed() {
    let mut cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch(&["steady", &go]);
    assert_eq!(launch.line(), "calling");
    cluster.kill_head();
    cluster.restart_head();
    cluster.kill_worker(0);
    cluster.restart_worker(0);
    until("the worker is back", || cluster.json(&["nodes"])["nodes"][0]["state"] == "UP");
    fs::write(&go, "").unwrap();
    assert_eq!(launch.line(), "the same process: true");
    assert_eq!(launch.end().code, 0);
}

#[test]
fn a_second_launch_finds_what_a_detached_actor_keeps() {
    let cluster = Cluster::start(&["host:1"]);
    let kept = cluster.application(&["keep", "total"]);
    assert_eq!((kept.code, kept.stdout.as_str()), (0, "kept\n"), "{}", kept.stderr);
    for total in ["found 42\n", "found 43\n"] {
        let found = cluster.application(&["find", "total"]);
        assert_eq!((found.code, found.stdout.as_str()), (0, total), "{}", found.stderr);
    }
    assert_eq!(cluster.jobs_of("application", "RUNNING").len(), 1);
    let stopped = cluster.application(&["stop", "total"]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    until("the application has ended", || cluster.jobs_of("application", "COMPLETED").len() == 1);
}

#[test]
fn another_build_is_refused() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch(&["wait", &go]);
    assert_eq!(launch.line(), "waiting");
    let mut bytes = fs::read(program("application")).unwrap();
    bytes.push(0);
    let other = Path::new(&cluster.path("application")).to_owned();
    fs::write(&other, bytes).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = cluster.launch_program(&other, &["find", "total"]).end();
    assert_eq!(refused.code, 78, "{}", refused.stderr);
    let hashes = refused.stderr.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() >= 12);
    assert!(hashes.count() >= 2, "{}", refused.stderr);
    fs::write(&go, "").unwrap();
    assert_eq!(launch.end().code, 0);
}

#[test]
fn the_end_of_the_coordinator_ends_everything() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch(&["steady", &go]);
    assert_eq!(launch.line(), "calling");
    let root = cluster.jobs_of("application", "RUNNING").remove(0);
    let coordinator = processes_with("COHABIT_APPLICATION_ROLE=coordinator");
    let own = cluster.program_processes();
    coordinator.into_iter().filter(|pid| own.contains(pid)).for_each(kill_process);
    let ended = launch.end();
    assert_eq!(ended.code, 137, "as the coordinator: {}", ended.stderr);
    let expected =
        format!("application 'test' has ended with its coordinator, job {root}: it was ended by SIGKILL");
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("`cohabit explain {root}` says more")), "{}", ended.stderr);
    assert_eq!(cluster.end(&root)["state"], "FAILED");
    until("all processes are gone", || cluster.program_processes().is_empty());
    until("all jobs have ended", || cluster.jobs_of("", "RUNNING").is_empty());
}

/// Whoever kills `main` ends it alone, and its launcher says so.
#[test]
fn the_end_of_a_killed_main_is_told() {
    let cluster = Cluster::start(&["host:1"]);
    let mut launch = cluster.launch(&["wait", &cluster.path("go")]);
    assert_eq!(launch.line(), "waiting");
    let own = cluster.program_processes();
    let mains = processes_with("COHABIT_JOB_ID=2\0");
    mains.into_iter().filter(|pid| own.contains(pid)).for_each(kill_process);
    let ended = launch.end();
    assert_eq!(ended.code, 137, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("main, job 2, has ended: it was ended by SIGKILL on node0"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("`cohabit explain 2` says more"), "{}", ended.stderr);
}

#[test]
fn a_cancelled_application_ends_with_its_children() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch(&["steady", &go]);
    assert_eq!(launch.line(), "calling");
    let root = cluster.jobs_of("application", "RUNNING").remove(0);
    cluster.ok(&["cancel", &root]);
    let ended = launch.end();
    assert_eq!(ended.code, 130);
    let expected = format!("application 'test', job {root}, has ended: it was cancelled after");
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    assert_eq!(cluster.end(&root)["state"], "CANCELLED");
    until("all processes are gone", || cluster.program_processes().is_empty());
    until("all jobs have ended", || cluster.jobs_of("", "RUNNING").is_empty());
}

/// Where a user may run one job, the coordinator is that one: whoever launches is told why nothing happens.
#[test]
fn a_main_that_waits_says_why() {
    let mut cluster = Cluster::with_head(&["--max-running-jobs", "1"], &[]);
    cluster.add_worker("host:1");
    let token = cluster.token("ada", &["--role", "user", "--name", "ada"]);
    let mut launch = Command::new(program("application"));
    launch.env_clear().current_dir(cluster.folder()).args(["count", "3"]);
    launch.env("COHABIT_HEAD", cluster.address()).env("COHABIT_TOKEN_FILE", &token);
    let mut launch = launch.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(launch.stderr.take().unwrap()).lines().map_while(Result::ok);
    let told = lines.into_iter().find(|line| line.contains("as many as max-running-jobs allows"));
    assert!(told.is_some_and(|line| line.contains("main, job 2, is PENDING")));
    launch.kill().unwrap();
    launch.wait().unwrap();
}

/// Users see whose child a job is, and its secrets are nowhere.
#[test]
fn the_jobs_of_an_application_are_shown() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch(&["steady", &go]);
    assert_eq!(launch.line(), "calling");
    let root = cluster.jobs_of("application", "RUNNING").remove(0);
    let actor = cluster.jobs_of("actor", "RUNNING").remove(0);
    assert_eq!(cluster.show(&actor)["application"], root.as_str());
    assert!(cluster.ok(&["show", &actor]).contains(&format!("application: child of job {root}")));
    let environments = cluster.program_processes().into_iter().map(|pid| {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        String::from_utf8_lossy(&[read("environ"), read("cmdline")].concat()).into_owned()
    });
    assert!(environments.into_iter().all(|text| !text.contains("cohabit1.")));
    fs::write(&go, "").unwrap();
    assert_eq!(launch.end().code, 0);
}
