//! Limits of cores, memory, processes and device files, as a real kernel enforces them through cgroup
//! version 2.
//!
//! `integration/kernel/run` runs these tests in a virtual machine of its own. Elsewhere they say so and pass.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::kit::*;

/// A cluster with one worker in a cgroup, if this machine has cgroups for tests.
fn cluster(flags: &[&str]) -> Option<Cluster> {
    if Cgroup::is_skipped() {
        return None;
    }
    let mut cluster = Cluster::with_head(&["--policy", "fifo"], &[]);
    fs::set_permissions(cluster.folder(), Permissions::from_mode(0o777)).unwrap();
    cluster.add_worker_with("host:4", flags);
    Some(cluster)
}

/// A file of the cgroup of a job's first attempt.
fn of_attempt(cluster: &Cluster, job: &str, file: &str) -> String {
    let cgroup = cluster.cgroup().unwrap().attempt(&format!("{job}#1"));
    fs::read_to_string(cgroup.join(file)).unwrap_or_default()
}

/// The number behind this word in a file of the kernel.
fn count(text: &str, word: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(word));
    line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
}

fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn the_worker_reports_what_the_kernel_enforces() {
    let Some(cluster) = cluster(&[]) else { return };
    let isolation = cluster.json(&["nodes"])["nodes"][0]["isolation"].clone();
    assert_eq!((&isolation["limits"], &isolation["devices"]), (&"enforced".into(), &"enforced".into()));
    assert_eq!(isolation["limits_reason"], Value::Null);
}

#[test]
fn a_job_that_takes_more_memory_than_it_claims_is_killed_and_its_neighbor_goes_on() {
    let Some(cluster) = cluster(&[]) else { return };
    let neighbor = cluster.submit(&["--mem", "64M"], "sleep 1000");
    // A line without an end is kept in memory as a whole.
    let greedy = cluster.submit(&["--mem", "64M"], "head -c 300M /dev/zero | tail -n 1 | wc -c");
    let ended = cluster.end(&greedy);
    assert_eq!((&ended["state"], &ended["reason_code"]), (&"OUT_OF_MEMORY".into(), &"memory_limit".into()));
    let within = cluster.submit(&["--mem", "64M"], "head -c 20M /dev/zero | tail -n 1 | wc -c");
    assert_eq!(cluster.end(&within)["state"], "COMPLETED");
    assert_eq!(cluster.state(&neighbor), "RUNNING");
}

/// Without a claim a job may take what is free, and all jobs together leave the worker what it needs.
#[test]
fn a_job_without_a_claim_leaves_the_worker_its_memory() {
    let Some(mut cluster) = cluster(&[]) else { return };
    cluster.kill_worker(0);
    fs::write(cluster.cgroup().unwrap().path().join("memory.max"), "268435456").unwrap();
    cluster.restart_worker(0);
    until("the worker is back", || cluster.json(&["nodes"])["nodes"][0]["state"] == "UP");
    let neighbor = cluster.submit(&[], "sleep 1000");
    let greedy = cluster.submit(&[], "head -c 600M /dev/zero | tail -n 1 | wc -c");
    let ended = cluster.end(&greedy);
    assert_eq!((&ended["state"], &ended["reason_code"]), (&"OUT_OF_MEMORY".into(), &"oom".into()));
    assert_eq!(cluster.state(&neighbor), "RUNNING");
    let next = cluster.submit(&[], "true");
    assert_eq!(cluster.end(&next)["state"], "COMPLETED");
}

#[test]
fn a_job_gets_no_more_cores_than_it_claims() {
    let Some(cluster) = cluster(&[]) else { return };
    let job = cluster.submit(&["--cpus", "1"], "for i in 1 2 3; do while :; do :; done & done; wait");
    until("the kernel holds it back", || count(&of_attempt(&cluster, &job, "cpu.stat"), "nr_throttled") > 0);
    let free = cluster.submit(&[], "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 1000");
    until("it has computed", || count(&of_attempt(&cluster, &free, "cpu.stat"), "usage_usec") > 200_000);
    assert_eq!(count(&of_attempt(&cluster, &free, "cpu.stat"), "nr_throttled"), 0);
}

#[test]
fn a_fork_bomb_stops_at_the_limit_of_processes_and_leaves_nothing() {
    let Some(cluster) = cluster(&[]) else { return };
    let bomb = cluster.submit(&[], "while sleep 1000 & do :; done");
    until("it reached its limit", || count(&of_attempt(&cluster, &bomb, "pids.events"), "max") > 0);
    let other = cluster.submit(&[], "echo still here");
    assert_eq!(cluster.end(&other)["state"], "COMPLETED");
    cluster.run(&["cancel", &bomb]);
    cluster.end(&bomb);
    let attempt = cluster.cgroup().unwrap().attempt(&format!("{bomb}#1"));
    until("all of it is gone", || !attempt.exists());
    assert_eq!(cluster.json(&["nodes"])["nodes"][0]["state"], "UP");
}

#[test]
fn what_hides_from_its_executor_ends_with_the_rank() {
    let Some(cluster) = cluster(&[]) else { return };
    let hidden = "(env -i setsid sh -c 'echo $$ > hidden.new; mv hidden.new hidden; exec sleep 1000' &) ; \
                  while [ ! -e hidden ]; do sleep 0.1; done";
    let job = cluster.submit(&[], hidden);
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    let pid = cluster.read("hidden");
    until("the hidden process is gone", || !is_alive(&pid));
}

#[test]
fn what_hides_from_a_killed_executor_ends_with_the_rank() {
    let Some(cluster) = cluster(&[]) else { return };
    let hidden = "env -i setsid sh -c 'echo $$ > hidden.new; mv hidden.new hidden; exec sleep 1000' & \
                  echo $PPID > executor.new; mv executor.new executor; wait; sleep 1000";
    let job = cluster.submit(&["--retries", "0"], hidden);
    cluster.until_file("hidden");
    cluster.until_file("executor");
    let (pid, executor) = (cluster.read("hidden"), cluster.read("executor"));
    kill_hard(executor.trim().parse().unwrap());
    until("the hidden process is gone", || !is_alive(&pid));
    assert_ne!(cluster.state(&job), "COMPLETED");
}

#[test]
fn a_job_can_neither_leave_its_cgroup_nor_change_its_limits() {
    let Some(cluster) = cluster(&["--min-uid", "1"]) else { return };
    let ada = cluster.token("ada", &["--role", "user", "--name", "ada", "--account", "games"]);
    let own = cluster.cgroup().unwrap().path().display().to_string();
    let script = format!(
        "own=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); \
         for at in {own}/daemon/cgroup.procs {own}/cgroup.procs /sys/fs/cgroup/cgroup.procs; do \
         (echo $$ > $at) 2>/dev/null && echo left to $at; done; \
         for file in memory.max pids.max cpu.max cgroup.subtree_control; do \
         (echo max > $own/../$file) 2>/dev/null && echo changed $file; done; \
         mkdir $own/below 2>/dev/null && echo made a cgroup; echo done"
    );
    let job = cluster.submit(&["--token-file", &ada, "--mem", "64M", "--cpus", "1"], &script);
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    assert_eq!(cluster.ok(&["logs", &job]), "done\n");
}

#[test]
fn limits_hold_after_the_worker_was_killed() {
    let Some(mut cluster) = cluster(&[]) else { return };
    let script = "touch started; while [ ! -e go ]; do sleep 0.1; done; head -c 300M /dev/zero | tail -n 1";
    let job = cluster.submit(&["--mem", "64M"], script);
    cluster.until_file("started");
    cluster.kill_worker(0);
    cluster.restart_worker(0);
    let enforced = |kind: &str| cluster.json(&["nodes"])["nodes"][0]["isolation"][kind] == "enforced";
    until("the next worker uses the same cgroup", || enforced("limits") && enforced("devices"));
    fs::write(cluster.path("go"), "").unwrap();
    assert_eq!(cluster.end(&job)["reason_code"], "memory_limit");
    let next = cluster.submit(&["--mem", "64M"], "true");
    assert_eq!(cluster.end(&next)["state"], "COMPLETED");
}
