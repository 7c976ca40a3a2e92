//! Tasks: functions of a program that run in processes which come and go with the work.

use std::collections::BTreeSet;
use std::fs;

use super::launch::{Launch, kill_process, program};
use crate::kit::*;

impl Cluster {
    fn launch_tasks(&self, arguments: &[&str]) -> Launch {
        self.launch_program(&program("tasks"), arguments)
    }

    /// Launches, waits for the end, and returns what `main` printed.
    fn printed(&self, arguments: &[&str]) -> String {
        let ended = self.launch_tasks(arguments).end();
        assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    /// Waits until nothing runs or waits any more; runners without tasks end by themselves.
    fn until_all_is_over(&self) {
        until("all jobs have ended", || {
            self.jobs_of("", "RUNNING").is_empty() && self.jobs_of("", "PENDING").is_empty()
        });
        until("all processes are gone", || self.program_processes().is_empty());
    }
}

#[test]
fn tasks_return_values_and_errors_and_leave_nothing() {
    let cluster = Cluster::start(&["host:1"]);
    assert_eq!(cluster.printed(&["squares", "5"]), "[0, 1, 4, 9, 16]\n");
    let expected = "failed: no such model\npanicked: it was told to\nno node has 64 GPUs\n144\n";
    assert_eq!(cluster.printed(&["errors"]), expected);
    cluster.until_all_is_over();
}

/// Tasks never reach the head: 10,000 more of them change none of its jobs.
#[test]
fn a_task_leaves_no_event() {
    let cluster = Cluster::start(&["host:1"]);
    let go = cluster.path("go");
    let mut launch = cluster.launch_tasks(&["many", &go]);
    assert_eq!(launch.line(), "9");
    let jobs = || {
        let listed = cluster.json(&["list", "--all"]);
        let known = |job: &serde_json::Value| {
            let shown = cluster.show(job["id"].as_str().unwrap());
            (job["id"].clone(), job["state"].clone(), shown["events"].as_array().map(Vec::len))
        };
        listed["jobs"].as_array().unwrap().iter().map(known).collect::<Vec<_>>()
    };
    let before = jobs();
    fs::write(&go, "").unwrap();
    assert_eq!(launch.line(), "in order: true");
    let after = jobs();
    assert_eq!(after[..before.len()], before, "a task changed a job");
    // The application asks for more processes while the functions' times are unknown: a live one for each
    // core at most, and as many that wait.
    let cores = std::thread::available_parallelism().unwrap().get();
    assert!(after.len() <= 2 + 2 * cores, "{after:?}");
    fs::write(format!("{go}.end"), "").unwrap();
    assert_eq!(launch.end().code, 0);
}

/// One of two processes is killed in the middle: only what it had got runs again.
#[test]
fn a_killed_runner_costs_a_retry() {
    let cluster = Cluster::start(&["host:1"]);
    let record = cluster.path("record");
    let mut launch = cluster.launch_tasks(&["slow", &record]);
    let lines = || fs::read_to_string(&record).unwrap_or_default().lines().count();
    until("ten tasks have begun", || lines() >= 10);
    let text = fs::read_to_string(&record).unwrap();
    let runner = text.lines().last().and_then(|line| line.split_once(' ')).unwrap().1;
    kill_process(runner.parse().unwrap());
    assert_eq!(launch.line(), "exact: true");
    assert_eq!(launch.end().code, 0);
    assert!((100..=108).contains(&lines()), "{} executions", lines());
    let text = fs::read_to_string(&record).unwrap();
    let numbers: BTreeSet<u64> =
        text.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(numbers.into_iter().eq(0..100));
    cluster.until_all_is_over();
    assert_eq!(cluster.jobs_of("tasks", "FAILED").len(), 1, "the killed process is the only one that failed");
}

#[test]
fn recursion_deeper_than_cores_ends() {
    let cluster = Cluster::start(&["host:1"]);
    assert_eq!(cluster.printed(&["fibonacci", "12"]), "144\n");
}

/// A task with the only GPU awaits another one, which could never start.
#[test]
fn waiting_for_oneself_is_told() {
    let cluster = Cluster::start(&["host:1"]);
    assert_eq!(cluster.printed(&["gpu", "0"]), "Ok(0)\n");
    let printed = cluster.printed(&["gpu", "1"]);
    assert!(printed.contains("the task would wait for ever: it needs 1 GPUs"), "{printed}");
    cluster.until_all_is_over();
}

/// Processes of tasks that never end are fewer as long as an actor waits for what they hold.
#[test]
fn an_actor_gets_a_gpu_that_tasks_hold() {
    let cluster = Cluster::start(&["host:2"]);
    assert_eq!(cluster.printed(&["crowd"]), "tasks hold both\nthe actor has one: true\n");
    cluster.until_all_is_over();
}

/// The reference of the parent of three sleepers: all four are cancelled.
#[test]
fn dropping_a_ref_cancels_its_tree() {
    let cluster = Cluster::start(&["host:1"]);
    let record = cluster.path("record");
    assert_eq!(cluster.printed(&["drop", &record]), "all began\nall ended\n");
    let text = fs::read_to_string(&record).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    let four = ["one", "parent", "three", "two"];
    let expected = four.map(|name| [format!("{name} began"), format!("{name} ended")]);
    assert_eq!(lines, expected.concat());
}

/// Whoever ends the application ends its tasks.
#[test]
fn runners_end_with_their_application() {
    let cluster = Cluster::start(&["host:1"]);
    let record = cluster.path("record");
    let launch = cluster.launch_tasks(&["slow", &record]);
    cluster.until_file("record");
    let root = cluster.jobs_of("application", "RUNNING").remove(0);
    cluster.ok(&["cancel", &root]);
    assert_ne!(launch.end().code, 0);
    assert_eq!(cluster.end(&root)["state"], "CANCELLED");
    cluster.until_all_is_over();
}
