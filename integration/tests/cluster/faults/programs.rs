//! Workers whose program is removed, or may no longer be executed, while they run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::kit::*;

/// A cluster with one worker, which runs a program of its own.
fn with_own_program() -> (Cluster, PathBuf) {
    let mut cluster = Cluster::with_head(&["--policy", "fifo"], &[]);
    let program = cluster.another_release("program");
    cluster.add_worker_of(program.clone(), "host:4");
    (cluster, program)
}

fn set_mode(program: &Path, mode: u32) {
    fs::set_permissions(program, Permissions::from_mode(mode)).unwrap();
}

/// As many jobs as the node has slots: the executor that was started ahead serves only one of them.
fn submit_four(cluster: &Cluster) -> Vec<String> {
    let script = format!("until [ -e {} ]; do sleep 0.02; done", cluster.path("go"));
    (0..4).map(|_| cluster.submit(&[], &script)).collect()
}

#[test]
fn a_worker_whose_program_was_removed_starts_jobs_as_before() {
    let (cluster, program) = with_own_program();
    fs::remove_file(program).unwrap();
    let jobs = submit_four(&cluster);
    jobs.iter().for_each(|job| cluster.until_state(job, "RUNNING"));
    fs::write(cluster.path("go"), "").unwrap();
    for job in jobs {
        assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    }
}

#[test]
fn a_worker_that_may_not_execute_its_program_fails_no_job() {
    let (cluster, program) = with_own_program();
    set_mode(&program, 0o600);
    let jobs = submit_four(&cluster);
    until("people are told", || {
        cluster.ok(&["nodes"]).contains("starts no jobs: no executor can be started")
    });
    set_mode(&program, 0o700);
    jobs.iter().for_each(|job| cluster.until_state(job, "RUNNING"));
    fs::write(cluster.path("go"), "").unwrap();
    for job in jobs {
        assert_eq!(cluster.end(&job)["state"], "COMPLETED");
    }
}
