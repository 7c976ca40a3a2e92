//! The binary without a cluster. Tests with a cluster are in `integration`.

use std::process::{Command, Output};

fn cohabit(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cohabit"));
    command.env_clear().args(arguments);
    command.output().expect("the binary runs")
}

#[test]
fn it_prints_its_version() {
    let output = cohabit(&["--version"]);
    assert!(output.status.success());
    assert_eq!(output.stdout, format!("cohabit {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
}

#[test]
fn an_unknown_command_is_a_usage_error_with_a_suggestion() {
    let output = cohabit(&["lits"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("list"));
}

#[test]
fn completions_contain_every_command() {
    let output = cohabit(&["completions", "bash"]);
    let script = String::from_utf8_lossy(&output.stdout);
    for verb in ["submit", "run", "list", "explain", "doctor"] {
        assert!(script.contains(verb), "{verb} is not completed");
    }
}
