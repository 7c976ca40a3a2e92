//! The SDK's examples, run as programs against a real cluster.

use std::path::PathBuf;
use std::process::Command;

use crate::kit::*;

/// The path of an example that `cargo test --workspace` has built.
fn example(name: &str) -> PathBuf {
    let example = binary().with_file_name("examples").join(name);
    assert!(example.exists(), "{} is missing: run `cargo test --workspace`", example.display());
    example
}

/// Runs the example. Returns its stdout, then its stderr.
fn run(cluster: &Cluster, name: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(example(name));
    command.env_clear().env("PATH", std::env::var("PATH").unwrap()).env("HOME", cluster.folder());
    command.env("COHABIT_STATE", cluster.folder().join("head")).current_dir(cluster.folder());
    let output = command.args(arguments).output().unwrap();
    let ran = CommandOutput::from(output);
    assert_eq!(ran.code, 0, "{name} failed: {}", ran.stderr);
    ran.stdout + &ran.stderr
}

#[test]
fn a_program_submits_and_follows_a_job() {
    let cluster = Cluster::start(&["host:1"]);
    let printed = run(&cluster, "submit_and_follow", &["sh", "-c", "echo trained"]);
    assert!(printed.contains("trained") && printed.contains("COMPLETED"), "{printed}");
}

#[test]
fn a_sweep_finds_the_best_learning_rate() {
    let cluster = Cluster::start(&["host:2"]);
    let digits = binary().with_file_name("digits").display().to_string();
    let printed = run(&cluster, "sweep", &[&digits, "--epochs", "3"]);
    assert!(printed.contains("best"), "{printed}");
}
