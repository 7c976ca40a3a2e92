//! What ended ranks leave on the disk of a worker, and what `logs` says where their output was removed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::kit::*;

/// Files and directories below this one, and the bytes that they take on the disk.
#[derive(Debug, Default)]
struct Usage {
    files: u64,
    bytes: u64,
}

impl Usage {
    fn of(path: &Path) -> Usage {
        // Removed meanwhile.
        let Ok(found) = fs::symlink_metadata(path) else { return Usage::default() };
        let mut usage = Usage { files: 1, bytes: found.blocks() * 512 };
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let inner = Usage::of(&entry.path());
            usage = Usage { files: usage.files + inner.files, bytes: usage.bytes + inner.bytes };
        }
        usage
    }
}

/// What a worker keeps of ranks, their checkpoints included.
fn usage_of_worker(cluster: &Cluster) -> Usage {
    let names = ["ranks", "checkpoints", "removed-ranks", "spare"].map(|name| format!("worker0/{name}"));
    let usages = names.map(|name| Usage::of(&cluster.folder().join(name)));
    usages
        .into_iter()
        .fold(Usage::default(), |sum, it| Usage { files: sum.files + it.files, bytes: sum.bytes + it.bytes })
}

#[test]
fn ended_ranks_that_printed_nothing_leave_a_few_bytes_and_no_files() {
    const RANKS: u64 = 400;
    let mut cluster = Cluster::start(&["host:4"]);
    let array = format!("1-{RANKS}");
    let job = cluster.ok(&["submit", "--array", &array, "--output", "quiet", "--", "true"]);
    let job = job.trim();
    cluster.ok(&["wait", job]);
    // A daemon removes them a minute later; the next one need not wait.
    cluster.stop_worker(0);
    cluster.restart_worker(0);
    until("no rank takes a file", || usage_of_worker(&cluster).files < 100);
    let usage = usage_of_worker(&cluster);
    assert!(usage.bytes / RANKS < 1024, "{usage:?}");
    until("the worker is back", || cluster.json(&["nodes"])["nodes"][0]["state"] == "UP");
    for member in [1, 200, RANKS] {
        assert_eq!(cluster.ok(&["logs", &format!("{job}.{member}")]), "");
    }
    assert_eq!(cluster.ok(&["logs", "-f", &format!("{job}.2")]), "");
}

#[test]
fn the_next_rank_uses_the_directory_of_one_that_printed_nothing_and_nothing_in_it() {
    let cluster = Cluster::start(&["host:1"]);
    let script = "cat $COHABIT_PROGRESS; ls -A $COHABIT_CHECKPOINT_DIR; echo $COHABIT_JOB_ID; \
         echo 1 >$COHABIT_PROGRESS";
    let silent = cluster.ok(&["submit", "--array", "1-20", "--output", "quiet", "--", "true"]);
    cluster.ok(&["wait", silent.trim()]);
    let entries = |name: &str| fs::read_dir(cluster.folder().join(name)).unwrap().count();
    // That of the last one stays as long as its executor waits.
    until("their directories are spare ones", || {
        entries("worker0/ranks") <= 1 && entries("worker0/spare") > 0
    });
    let before = entries("worker0/spare");
    for number in [2, 3] {
        assert_eq!(cluster.ok(&["run", "--", "sh", "-c", script]).trim(), number.to_string());
    }
    // That of the last silent one may have become a spare one meanwhile.
    assert!(entries("worker0/spare") < before);
    for (member, printed) in [("1.1", ""), ("1.20", ""), ("2", "2\n"), ("3", "3\n")] {
        assert_eq!(cluster.ok(&["logs", member]), printed);
    }
}

/// A cluster whose worker has this setting.
fn with_setting(name: &str, value: &str) -> Cluster {
    let mut cluster = Cluster::start(&[]);
    cluster.add_worker_in(&[(name, value)], "host:1", &[]);
    cluster
}

/// The error of `logs` for a job whose output was removed.
fn until_removed(cluster: &Cluster, job: &str) -> String {
    let refusal = || {
        let output = cluster.command(&["logs", job]).output().unwrap();
        (!output.status.success()).then(|| String::from_utf8(output.stderr).unwrap())
    };
    until(&format!("the output of job {job} is removed"), || refusal().is_some());
    refusal().unwrap()
}

#[test]
fn output_beyond_the_cap_is_removed_oldest_first_and_logs_say_so() {
    let mut cluster = with_setting("COHABIT_LOG_TOTAL", "1M");
    let printing = "head -c 400000 /dev/zero | tr '\\0' x";
    let jobs: Vec<String> = (0..4)
        .map(|_| {
            let job = cluster.submit(&[], printing);
            cluster.end(&job);
            job
        })
        .collect();
    let refusal = until_removed(&cluster, &jobs[0]);
    assert!(refusal.contains("was removed from node node0") && refusal.contains("'log-total'"), "{refusal}");
    until_removed(&cluster, &jobs[1]);
    for kept in &jobs[2..] {
        assert_eq!(cluster.ok(&["logs", kept]).len(), 400_000);
    }
    // The next worker daemon knows how much there is.
    cluster.stop_worker(0);
    cluster.restart_worker(0);
    let next = cluster.submit(&[], printing);
    cluster.end(&next);
    until_removed(&cluster, &jobs[2]);
    assert_eq!(cluster.ok(&["logs", &next]).len(), 400_000);
}

#[test]
fn output_of_more_ranks_than_allowed_is_removed_oldest_first() {
    let cluster = with_setting("COHABIT_LOG_RANKS", "2");
    let jobs: Vec<String> = (0..4)
        .map(|number| {
            let job = cluster.submit(&[], &format!("echo {number}"));
            cluster.end(&job);
            job
        })
        .collect();
    let refusal = until_removed(&cluster, &jobs[1]);
    assert!(refusal.contains("was removed from node node0") && refusal.contains("'log-ranks'"), "{refusal}");
    assert_eq!(cluster.ok(&["logs", &jobs[3]]), "3\n");
}
