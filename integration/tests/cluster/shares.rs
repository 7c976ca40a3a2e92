//! Cores and host memory that change while jobs run: under limits of a real kernel, and on a worker without.
//!
//! Tests that need cgroups say so and pass where there are none; `integration/kernel/run` has some.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kit::*;

const TABLE: &str = "tables.csv";
const LEAST_MEMORY: u64 = 64 << 20;
const MOST_MEMORY: u64 = 256 << 20;
const RANGES: [&str; 4] = ["--cpus", "1..4", "--mem", "64M..256M"];
/// With fewer cores each of two jobs holds one, and there is nothing to exchange.
const FEWEST_CORES: u64 = 4;

/// As many loops as a job may have cores.
const LOOPS: &str = "for i in 1 2 3 4; do while :; do :; done & done; wait";

/// `gains` is faster with more cores and memory, `still` with none.
fn table() -> String {
    let rows = [1, 2, 3, 4].map(|cores| {
        let gains = format!("gains,{cores},0.0625,{cores}\ngains,{cores},0.25,{}\n", 2 * cores);
        gains + &format!("still,{cores},0.0625,1\nstill,{cores},0.25,1\n")
    });
    "profile,cores,memory_gb,speed\n".to_owned() + &rows.concat()
}

fn node(cluster: &Cluster) -> Value {
    cluster.json(&["nodes"])["nodes"][0].clone()
}

fn submit(cluster: &Cluster, group: &str, ranges: &[&str], script: &str) -> String {
    let job = cluster.submit(&[&["--gpus", "1", "--group", group], ranges].concat(), script);
    cluster.until_state(&job, "RUNNING");
    job
}

/// What the head says that a running job holds, in cores and bytes.
fn held(cluster: &Cluster, job: &str) -> (u64, u64) {
    let shown = cluster.show(job);
    let host = &shown["attempts"].as_array().unwrap().last().unwrap()["host"][0];
    (host["cpus"].as_u64().unwrap(), host["memory"].as_u64().unwrap())
}

/// The cgroup of a job's first attempt.
struct JobCgroup(PathBuf);

impl JobCgroup {
    fn of(cluster: &Cluster, job: &str) -> JobCgroup {
        JobCgroup(cluster.cgroup().unwrap().attempt(&format!("{job}#1")))
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).unwrap_or_default()
    }

    /// The limits that the kernel enforces, in cores and bytes.
    fn limits(&self) -> (u64, u64) {
        let cpu = self.read("cpu.max");
        let words: Vec<u64> = cpu.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [quota, period] = words[..] else { panic!("cpu.max is {cpu:?}") };
        (quota / period, self.read("memory.max").trim().parse().unwrap())
    }

    fn used(&self) -> Duration {
        let stat = self.read("cpu.stat");
        let line = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
        Duration::from_micros(line.unwrap().trim().parse().unwrap())
    }
}

/// The machine's kernel lets each job use what the head says, and what one gives up the other one gets.
#[test]
fn running_jobs_exchange_cores_and_the_kernel_enforces_it() {
    if Cgroup::is_skipped() {
        return;
    }
    let mut cluster = Cluster::with_head(&[], &[(TABLE, &table())]);
    cluster.add_worker("host:2");
    let cores = node(&cluster)["cpus"].as_u64().unwrap();
    if cores < FEWEST_CORES {
        return say("skipped: two jobs need four cores to exchange some");
    }
    let range = format!("1..{cores}");
    let ranges = [&["--cpus", range.as_str()], &RANGES[2..]].concat();
    let (gains, still) =
        (submit(&cluster, "gains", &ranges, LOOPS), submit(&cluster, "still", &ranges, LOOPS));
    let (gaining, giving) = (JobCgroup::of(&cluster, &gains), JobCgroup::of(&cluster, &still));
    let start = (cores / 2, MOST_MEMORY);
    assert_eq!((held(&cluster, &gains), held(&cluster, &still)), (start, start));
    assert_eq!((gaining.limits(), giving.limits()), (start, start));

    cluster.restart_head_with(&["--policy", "hybrid:tune=on", "--sensitivity", TABLE]);
    let (most, least) = ((cores - 1, MOST_MEMORY), (1, LEAST_MEMORY));
    // A job is first changed half a minute after its start.
    until_within(2 * TIMEOUT, "the jobs have exchanged cores", || {
        let (more, less) = (held(&cluster, &gains), held(&cluster, &still));
        assert!(node(&cluster)["cpus_used"].as_u64().unwrap() <= cores);
        // What shrinks is free only when the kernel has taken it.
        assert!(gaining.limits().0 + giving.limits().0 <= cores);
        (more, less) == (most, least)
    });
    assert_eq!((gaining.limits(), giving.limits()), (most, least));

    let (begin, first) = (Instant::now(), [gaining.used(), giving.used()]);
    until("the CPU time follows", || {
        let [gained, given] = [gaining.used() - first[0], giving.used() - first[1]];
        // The kernel refills quotas each 0.1 s.
        assert!(given.as_secs_f64() <= begin.elapsed().as_secs_f64() + 0.5);
        given > Duration::from_secs(1) && gained > given.mul_f64(1.5)
    });
    let explained = cluster.ok(&["explain", &still]);
    assert!(explained.contains("has 1 core and 64 MiB instead of "), "{explained}");
    for job in [&gains, &still] {
        assert_eq!(cluster.state(job), "RUNNING");
        cluster.ok(&["cancel", job]);
        assert_eq!(cluster.end(job)["attempt"], 1);
    }
}

#[test]
fn a_worker_without_cgroups_keeps_the_shares_that_jobs_started_with() {
    let head = ["--policy", "fifo:tune=on", "--sensitivity", TABLE];
    let mut cluster = Cluster::with_head(&head, &[(TABLE, &table())]);
    cluster.add_worker("host:2");
    if node(&cluster)["isolation"]["limits"] == "enforced" {
        return say("skipped: the worker can change shares here");
    }
    let first = submit(&cluster, "gains", &RANGES, "sleep 1000");
    let start = held(&cluster, &first);
    let explained = cluster.ok(&["explain", &first]);
    for words in ["this is fixed while it runs, because limits are not enforced on that node: ", " core"] {
        assert!(explained.contains(words), "{words:?} is not in {explained}");
    }
    // The first job could not be made to give anything up, so it has left this one its part.
    let second = submit(&cluster, "still", &RANGES, "sleep 1000");
    assert_eq!(held(&cluster, &second), start);
    assert_eq!((held(&cluster, &first), cluster.state(&first)), (start, "RUNNING".to_owned()));
}

#[test]
fn the_demo_of_tuning_shows_what_is_enforced_and_says_what_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let cgroup = Cgroup::create();
    let arguments = vec!["demo".to_owned(), "--tune".to_owned()];
    let (program, arguments) = match &cgroup {
        Some(cgroup) => cgroup.wrap(&binary(), arguments),
        None => (binary(), arguments),
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", std::env::var("PATH").unwrap());
    let output = command.env("HOME", folder.path()).env("TMPDIR", folder.path()).output().unwrap();
    let ran = CommandOutput::from(output);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    say(&ran.stdout);
    let rows: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    // JOB TRAINING SHARES ALLOTTED CPU.MAX ...
    let row = |shares: &str, job: &str| rows.iter().find(|row| row.len() > 4 && row[1..3] == [job, shares]);
    if let Some(before) = row("proportional", "digits") {
        let after = row("tuned", "digits").unwrap();
        let count = |row: &[&str]| row[3].parse::<u32>().unwrap();
        assert!(count(after) > count(before), "{}", ran.stdout);
        assert_eq!(format!("{}.00", after[3]), after[4], "the kernel enforces what the head says");
        assert!(ran.stdout.contains("Sum of speeds: 2.00 proportional, "), "{}", ran.stdout);
    } else {
        assert!(row("fixed", "digits").is_some() && row("fixed", "charlm").is_some(), "{}", ran.stdout);
        assert!(ran.stdout.contains("nothing here was enforced") || ran.stdout.contains("needs 4"));
    }
    let left = || processes_with(&folder.path().display().to_string());
    until("no process is left", || left().iter().all(|pid| *pid == std::process::id() as i32));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "files are left");
}
