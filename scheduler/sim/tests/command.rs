//! The program `cohabit-sim`: what it prints and how it exits.

use std::process::{Command, Output};

fn simulate(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cohabit-sim"));
    command.env_clear().args(arguments);
    command.output().expect("the program runs")
}

#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = simulate(arguments);
    let printed = String::from_utf8(output.stdout).expect("it prints text");
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    printed
}

#[test]
fn seeds_are_counted_and_none_fails() {
    for action in ["swarm", "applications"] {
        let printed = printed(&[action, "--seeds", "3..5"]);
        assert_eq!(printed.lines().next(), Some("2 seeds, 0 failed"), "{action}: {printed}");
    }
}

#[test]
fn a_repeated_seed_prints_the_same_trace() {
    let seed = ["repeat", "--seed", "5", "--nodes", "2", "--jobs", "5", "--trace"];
    let trace = printed(&seed);
    assert!(trace.lines().count() > 20, "{trace}");
    assert_eq!(printed(&seed), trace);
    assert_ne!(printed(&["repeat", "--seed", "6", "--nodes", "2", "--jobs", "5", "--trace"]), trace);
}

#[test]
fn a_command_line_that_means_nothing_is_told_from_a_failed_seed() {
    for arguments in
        [&["swarm", "--seeds", "7"][..], &["swarm", "--seeds", "7..2"], &["applications", "--trace"], &[]]
    {
        let output = simulate(arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{arguments:?}");
    }
}
