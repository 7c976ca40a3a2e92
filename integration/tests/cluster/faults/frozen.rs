//! Executors that do not act: the worker daemon ends their ranks, and them, in their place.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kit::*;

fn freeze(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
}

/// The executor that waits for the next rank of this worker.
fn idle_executor(cluster: &Cluster) -> i32 {
    let state = cluster.path("worker0");
    let command = format!("\0executor\0{state}\0");
    let is_executor =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|it| it.ends_with(&command));
    let find = || processes_with(&state).into_iter().find(is_executor);
    until("an executor waits", || find().is_some());
    find().unwrap()
}

/// The state of a process and the id of its parent; `None` if nothing is left of it.
fn state_and_parent(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn children_of(parent: i32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").unwrap();
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| state_and_parent(*pid).is_some_and(|(_, of)| of == parent)).collect()
}

fn is_gone(pid: &i32) -> bool {
    state_and_parent(*pid).is_none_or(|(state, _)| state == 'Z')
}

#[test]
fn a_rank_whose_executor_never_starts_it_ends_soon_after_its_time_limit() {
    let cluster = Cluster::start(&["host:1"]);
    let executor = idle_executor(&cluster);
    freeze(executor);
    let job = cluster.submit(&["--time", "1s"], "true");
    let ended = cluster.end(&job);
    assert_eq!(ended["state"], "TIMEOUT", "{ended}");
    assert!(ended.to_string().contains("it was not started in time"), "{ended}");
    assert!(is_gone(&executor));
    let next = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&next)["state"], "COMPLETED", "its slot is free");
}

#[test]
fn a_rank_whose_executor_hangs_is_killed_with_all_its_processes() {
    let cluster = Cluster::start(&["host:1"]);
    let log = cluster.attempt_log("log");
    let job = cluster.submit(&[], &format!("(env -i setsid sleep 1000 &)\n{}", log.script()));
    log.until_started(1, 1);
    let executor = cluster.executor_of(0, &format!("{job}/1/0"));
    until("the detached process is the executor's", || children_of(executor).len() == 2);
    let processes = [children_of(executor), vec![executor]].concat();
    freeze(executor);
    cluster.ok(&["cancel", "--force", &job]);
    let ended = cluster.end(&job);
    assert_eq!((ended["state"].as_str(), ended["attempt"].as_u64()), (Some("CANCELLED"), Some(1)), "{ended}");
    assert!(processes.iter().all(is_gone), "nothing is left when the end is told");
}
