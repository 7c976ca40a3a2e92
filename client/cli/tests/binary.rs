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

/// What the program offers a shell for the last of these words.
fn offered(words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cohabit"));
    command.env_clear().env("COHABIT_COMPLETE", "bash").env("HOME", "/nonexistent");
    command.env("COHABIT_STATE", "/nonexistent").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.env("_CLAP_IFS", "\n").args(["--", "cohabit"]).args(words);
    let output = command.output().expect("the binary runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn completions_contain_every_command_and_its_flags() {
    let commands = offered(&[""]);
    for verb in ["submit", "run", "list", "explain", "doctor"] {
        assert!(commands.lines().any(|line| line == verb), "{verb} is not completed: {commands}");
    }
    assert_eq!(offered(&["submit", "--gpu-m"]).trim(), "--gpu-mem");
    assert_eq!(offered(&["worker", "dr"]).trim(), "drain");
}

#[test]
fn without_a_head_there_are_no_jobs_to_complete_and_no_messages() {
    assert_eq!(offered(&["cancel", "1"]), "");
    assert_eq!(offered(&["worker", "drain", "g"]), "");
}

#[test]
fn the_script_of_each_shell_asks_this_program() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = cohabit(&["completions", shell]);
        let script = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && script.contains("COHABIT_COMPLETE"), "{shell}: {script}");
    }
}
