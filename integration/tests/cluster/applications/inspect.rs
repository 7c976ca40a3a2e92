//! Looking at an application: what its users see of its processes, actors, tasks and logs.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::launch::{Launch, program};
use crate::kit::*;

/// A cluster with one simulated GPU.
fn cluster() -> Cluster {
    let mut cluster = Cluster::start(&[]);
    cluster.add_worker_with("sim:1xH200-141G", &["--max-sharing", "4"]);
    cluster
}

/// Launches the program and waits until all of it runs, or waits for what the application may not have.
/// Returns the process of its first actor, too.
fn launch(cluster: &Cluster, go: &str) -> (Launch, i32) {
    let mut launch = cluster.launch_program(&program("inspect"), &[go]);
    assert_eq!(launch.line(), "no such model");
    let process = launch.line().strip_prefix("process ").unwrap().parse().unwrap();
    (launch, process)
}

/// The value of this key of all of them.
fn all<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|it| it[key].as_str().unwrap_or_default()).collect()
}

#[test]
fn an_application_is_seen_with_its_processes_actors_and_tasks() {
    let cluster = cluster();
    let go = cluster.path("go");
    let (launch, _) = launch(&cluster, &go);
    let listed = cluster.json(&["applications"])["applications"][0].clone();
    assert_eq!((listed["name"].as_str(), listed["node"].as_str()), (Some("inspect"), Some("node0")));
    assert_eq!((listed["gpus"].as_f64(), listed["max_gpus"].as_u64()), (Some(1.0), Some(1)));
    let root = listed["id"].as_str().unwrap();
    assert_eq!(all(&listed["processes"], "role"), ["main", "actor", "tasks"]);
    assert_eq!(cluster.show(listed["mains"][0].as_str().unwrap())["application"], root);

    let seen = cluster.json(&["actors", "inspect"]);
    let actors = &seen["actors"];
    assert_eq!(all(actors, "name"), ["first", "second", "third"]);
    assert_eq!(all(actors, "state"), ["READY", "READY", "QUEUED"]);
    assert_eq!(all(actors, "node"), ["node0", "node0", ""]);
    let third = actors[2]["reason"].as_str().unwrap();
    assert!(third.starts_with("needs 0.5 GPUs; 1 of max_gpus 1 are in use"), "{third}");
    let first = &actors[0];
    assert_eq!((first["type"].as_str(), first["calls"].as_u64()), (Some("Half"), Some(1)));
    assert_eq!((first["holders"].as_u64(), first["incarnation"].as_u64()), (Some(1), Some(1)));
    assert_eq!(cluster.show(first["job"].as_str().unwrap())["share"], 0.5);
    assert_eq!(cluster.json(&["actors", root])["actors"][0]["job"], first["job"]);

    until("the states of all tasks are seen", || {
        let seen = cluster.json(&["tasks", root]);
        let tasks = seen["tasks"].as_array().unwrap().iter();
        let state = |task: &Value| (task["task"].as_str().unwrap().to_owned(), task["state"].clone());
        let states: Vec<(String, Value)> = tasks.map(state).collect();
        let expected =
            [("waits", "RUNNING"), ("needs_a_gpu", "WAITING"), ("fails", "FAILED"), ("square", "RETURNED")];
        states == expected.map(|(task, state)| (task.to_owned(), state.into()))
    });
    let seen = cluster.json(&["tasks", "inspect"]);
    assert_eq!(seen["tasks"][2]["reason"], "no such model");
    let class = &seen["classes"][seen["tasks"][1]["class"].as_u64().unwrap() as usize];
    let reason = class["reason"].as_str().unwrap();
    assert!(reason.contains("needs 1 GPUs; 1 of max_gpus 1 are in use"), "{reason}");
    assert_eq!(class["gpus"], 1.0);
    assert!(cluster.ok(&["tasks", "inspect"]).contains("no such model"));

    let explained = cluster.ok(&["explain", "inspect"]);
    assert!(explained.contains("Actor 3 (third) waits: needs 0.5 GPUs"), "{explained}");
    assert_eq!(cluster.json(&["objects", "inspect"])["objects"], Value::Array(Vec::new()));
    fs::write(&go, "").unwrap();
    let ended = launch.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "first\ndone\n"), "{}", ended.stderr);
}

#[test]
fn the_logs_of_all_processes_are_one() {
    let cluster = cluster();
    let go = cluster.path("go");
    let (launch, _) = launch(&cluster, &go);
    let constructed = ["[first 3] first is constructed", "[second 4] second is constructed"];
    until("what was printed is there", || {
        let log = cluster.ok(&["logs", "inspect"]);
        let lines: Vec<&str> = log.lines().collect();
        let position = |line: &str| lines.iter().position(|it| *it == line);
        let both = constructed.map(position);
        both.iter().all(Option::is_some) && both.is_sorted() && position("[main 2] no such model") > both[1]
    });
    let mut command = cluster.command(&["logs", "--follow", "--output", "json", "inspect"]);
    let mut following = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdout, mut text) = (BufReader::new(following.stdout.take().unwrap()), String::new());
    // An application that has ended cannot be followed.
    stdout.read_line(&mut text).unwrap();
    fs::write(&go, "").unwrap();
    assert_eq!(launch.end().code, 0);
    stdout.read_to_string(&mut text).unwrap();
    let followed = CommandOutput::from(following.wait_with_output().unwrap());
    assert_eq!(followed.code, 0, "{}", followed.stderr);
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let printed: Vec<(String, String)> = lines
        .map(|line| (line["process"].as_str().unwrap().into(), line["text"].as_str().unwrap().into()))
        .collect();
    for expected in [("first", "first is constructed"), ("main", "first"), ("main", "done")] {
        let count = printed.iter().filter(|(process, text)| (process.as_str(), text.as_str()) == expected);
        assert_eq!(count.count(), 1, "{expected:?} in {printed:?}");
    }
    for command in ["logs", "explain"] {
        let told = cluster.run(&[command, "inspect"]);
        assert_eq!((told.code, told.stdout.as_str()), (66, ""));
        let expected = "application 'inspect' has ended: its last run, job 1, ended as COMPLETED at 20";
        assert!(told.stderr.contains(expected), "{}", told.stderr);
        assert!(told.stderr.contains(&format!("`cohabit {command} 1`")), "{}", told.stderr);
    }
    let ended = cluster.ok(&["logs", "1"]);
    assert!(ended.contains("[main 2] done"), "also when it has ended: {ended}");
    assert!(!cluster.ok(&["logs", "--rank", "0", "1"]).contains("done"), "the coordinator alone");
}

/// What is known without a process that hangs is told, and that it hangs.
#[test]
fn a_process_that_does_not_answer_is_named() {
    let cluster = cluster();
    let go = cluster.path("go");
    let (launch, process) = launch(&cluster, &go);
    let job = cluster.json(&["actors", "inspect"])["actors"][0]["job"].as_str().unwrap().to_owned();
    kill(Pid::from_raw(process), Signal::SIGSTOP).unwrap();
    let seen = cluster.json(&["actors", "inspect"]);
    let shown = cluster.ok(&["actors", "inspect"]);
    kill(Pid::from_raw(process), Signal::SIGCONT).unwrap();
    let told = format!("the actor process 'first' (job {job}/0) on node node0 did not answer in time");
    assert!(shown.contains(&told), "{shown}");
    let silent = &seen["silent_processes"][0];
    assert_eq!([&silent["role"], &silent["job"], &silent["node"]], ["actor", job.as_str(), "node0"]);
    assert_eq!(seen["silent"].as_array().unwrap().len(), 1);
    assert!(seen["silent"][0].as_str().unwrap().starts_with(&job), "{}", seen["silent"]);
    assert_eq!(all(&seen["actors"], "state"), ["READY", "READY", "QUEUED"]);
    let first = &seen["actors"][0];
    assert!(first["calls"].is_null(), "the one that hangs may have made calls");
    assert_eq!(first["known_calls"], 1, "those of main are known");
    fs::write(&go, "").unwrap();
    assert_eq!(launch.end().code, 0);
}

#[test]
fn only_owners_and_admins_see_into_an_application() {
    let cluster = cluster();
    let token = cluster.token("eve", &["--role", "user", "--name", "eve"]);
    let as_eve = |arguments: &[&str]| cluster.run(&[arguments, &["--token-file", &token]].concat());
    let none = cluster.run(&["actors", "inspect"]);
    assert_eq!(none.code, 66);
    assert!(none.stderr.contains("there is no live application 'inspect'"), "{}", none.stderr);
    let go = cluster.path("go");
    let (launch, _) = launch(&cluster, &go);
    let unknown = cluster.run(&["tasks", "inspct"]);
    assert_eq!(unknown.code, 66);
    assert!(unknown.stderr.contains("'inspect' (job 1)"), "{}", unknown.stderr);
    for command in ["actors", "tasks", "objects"] {
        let refused = as_eve(&[command, "1"]);
        assert_eq!(refused.code, 77, "{}", refused.stderr);
        assert!(refused.stderr.contains("only its owner and admins"), "{}", refused.stderr);
    }
    assert_eq!(as_eve(&["applications", "--output", "quiet"]).stdout, "");
    assert_eq!(as_eve(&["applications", "--all", "--output", "quiet"]).stdout, "1\n");
    fs::write(&go, "").unwrap();
    assert_eq!(launch.end().code, 0);
}

#[test]
fn a_launcher_that_is_told_to_end_cancels_its_application() {
    let cluster = Cluster::start(&["host:1"]);
    let mut launch = cluster.launch(&["wait", &cluster.path("go")]);
    assert_eq!(launch.line(), "waiting");
    launch.signal(Signal::SIGTERM);
    let ended = launch.end();
    assert_ne!(ended.code, 0);
    assert!(ended.stderr.contains("cancels job 1"), "{}", ended.stderr);
    assert_eq!(cluster.end("1")["state"], "CANCELLED");
    until("all processes are gone", || cluster.program_processes().is_empty());
}
