//! A worker whose disk is full: running jobs go on, and jobs that cannot start are tried again.
//!
//! The disk is a small file system in memory. Where mounting one is not permitted, these tests are skipped
//! with a message.

use std::fs;

use crate::kit::{Cluster, SmallDisk, until};

/// A cluster with one worker whose state is on a small disk.
fn with_small_disk() -> Option<(SmallDisk, Cluster)> {
    let mut cluster = Cluster::with_head(&["--policy", "fifo"], &[]);
    let state = cluster.folder().join("worker0");
    fs::create_dir(&state).unwrap();
    let disk = SmallDisk::on(&state, "size=24m,mode=755")?;
    cluster.add_worker("host:2");
    Some((disk, cluster))
}

#[test]
fn a_job_that_ends_on_a_full_disk_has_ended_as_soon_as_there_is_room() {
    let Some((disk, cluster)) = with_small_disk() else { return };
    let script = format!(
        "echo first; until [ -e {} ]; do sleep 0.02; done; seq 1 2000000; exit 7",
        cluster.path("go")
    );
    let job = cluster.submit(&[], &script);
    until("its first words", || cluster.ok(&["logs", &job]).contains("first"));
    disk.fill();
    fs::write(cluster.path("go"), "").unwrap();
    let other = cluster.submit(&[], "echo other");
    until("the other job is refused by its node", || {
        cluster.ok(&["explain", &other]).contains("its node has a problem")
    });
    until("people are told", || cluster.ok(&["nodes"]).contains("starts no jobs: "));
    assert_eq!(cluster.state(&job), "RUNNING", "its end could not be written down");
    disk.empty();
    let ended = cluster.end(&job);
    assert_eq!((ended["state"].as_str(), ended["exit_code"].as_i64()), (Some("FAILED"), Some(7)));
    assert_eq!(ended["attempt"], 1);
    assert!(cluster.ok(&["logs", &job]).starts_with("first"));
    assert_eq!(cluster.end(&other)["state"], "COMPLETED");
}

#[test]
fn output_lost_on_a_full_disk_is_noted_and_the_job_keeps_running() {
    let Some((disk, cluster)) = with_small_disk() else { return };
    let wait = |name: &str| format!("until [ -e {} ]; do sleep 0.02; done", cluster.path(name));
    let say = |name: &str| format!("echo > {}", cluster.path(name));
    let script = ["echo first", &wait("full"), "seq 1 300000", &say("printed"), &wait("empty"), "echo last"];
    let job = cluster.submit(&[], &script.join("; "));
    until("its first words", || cluster.ok(&["logs", &job]).contains("first"));
    disk.fill();
    fs::write(cluster.path("full"), "").unwrap();
    cluster.until_file("printed");
    disk.empty();
    fs::write(cluster.path("empty"), "").unwrap();
    assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    let printed = cluster.run(&["logs", &job]);
    assert!(printed.stdout.starts_with("first\n") && printed.stdout.ends_with("last\n"));
    let all = printed.stdout + &printed.stderr;
    assert!(all.contains("bytes of output were lost: the disk was full"), "{} bytes", all.len());
}
