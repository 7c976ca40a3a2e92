//! The PyTorch workload zoo as jobs. Skipped, with a message, where PyTorch is not installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::kit::*;

/// The Python interpreter: `$PYTHON`, or `python3`.
fn python() -> String {
    std::env::var("PYTHON").unwrap_or_else(|_| "python3".into())
}

/// The directory from which the zoo is imported.
fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples/pytorch")
}

/// Whether Python can import PyTorch. Says so if not.
#[expect(clippy::print_stderr, reason = "whoever reads the tests has to know what was not tested")]
fn has_torch() -> bool {
    let imported = Command::new(python()).args(["-c", "import torch"]).stderr(Stdio::null()).status();
    let has = imported.is_ok_and(|status| status.success());
    if !has {
        eprintln!("skipped: {} has no module torch", python());
    }
    has
}

#[test]
fn a_workload_of_the_zoo_continues_from_its_checkpoint() {
    if !has_torch() {
        return;
    }
    let cluster = Cluster::start(&["host:1"]);
    let train = format!("exec {} -B -m zoo.train --model pointnet --batch 2 --steps 1000000", python());
    let folder = format!("PYTHONPATH={}", programs().display());
    let job = cluster.submit(&["--env", &folder], &train);
    let step = || cluster.show(&job)["progress"]["step"].as_u64().unwrap_or(0);
    until("it steps", || step() > 0);
    let reached = step();
    cluster.ok(&["requeue", &job]);
    until("its second attempt has resumed", || {
        cluster.run(&["logs", &job]).stdout.contains("resumed at step")
    });
    until("it gets further", || cluster.show(&job)["attempt"] == 2 && step() > reached);
    cluster.ok(&["cancel", &job]);
    assert_eq!(cluster.end(&job)["state"], "CANCELLED");
}
