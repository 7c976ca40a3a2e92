//! Two processes that train one network together: output, checkpoints and stopping.

#![expect(clippy::unwrap_used, reason = "a failed test step ends the test")]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use candle_core::{Device, Tensor};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const DIGITS: &str = env!("CARGO_BIN_EXE_digits");

fn command(folder: &Path, epochs: &str) -> Command {
    let mut command = Command::new(DIGITS);
    command.args(["--hidden", "32", "--batch-size", "64", "--epochs", epochs]);
    command.env_remove("RAYON_NUM_THREADS").env("COHABIT_CHECKPOINT_DIR", folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts two ranks, each with its own checkpoint directory.
fn pair(folder: &Path, epochs: &str) -> [Child; 2] {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    [0, 1].map(|rank: u32| {
        let mut command = command(&folder.join(rank.to_string()), epochs);
        command.arg("--data-parallel").env("RANK", rank.to_string()).env("WORLD_SIZE", "2");
        command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
        command.spawn().unwrap()
    })
}

fn both_end(pair: [Child; 2]) -> [Output; 2] {
    pair.map(|rank| rank.wait_with_output().unwrap())
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

/// Reads the output of a rank up to a line with these words.
fn until_printed(child: &mut Child, words: &str) {
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(words)), "it never printed {words:?}");
}

fn saved(folder: &Path) -> HashMap<String, Tensor> {
    candle_core::safetensors::load(folder.join("digits.safetensors"), &Device::Cpu).unwrap()
}

fn furthest_apart(left: &HashMap<String, Tensor>, right: &HashMap<String, Tensor>) -> f32 {
    let apart = |(name, tensor): (&String, &Tensor)| -> f32 {
        (tensor - &right[name])
            .unwrap()
            .abs()
            .unwrap()
            .flatten_all()
            .unwrap()
            .max(0)
            .unwrap()
            .to_scalar()
            .unwrap()
    };
    left.iter().map(apart).fold(0.0, f32::max)
}

#[test]
fn two_processes_end_with_nearly_the_weights_of_a_single_one() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = both_end(pair(folder.path(), "5"));
    assert!(first.status.success() && second.status.success(), "{first:?} {second:?}");
    assert!(stdout(&first).contains("accuracy") && second.stdout.is_empty(), "only the first rank prints");
    assert!(!folder.path().join("1").exists(), "only the first rank saves");
    let alone = folder.path().join("alone");
    assert!(command(&alone, "5").status().unwrap().success());
    let apart = furthest_apart(&saved(&folder.path().join("0")), &saved(&alone));
    assert!(apart < 1e-2, "{apart}");
}

#[test]
fn sigterm_to_one_rank_stops_both_after_the_same_step_and_both_resume_there() {
    let folder = tempfile::tempdir().unwrap();
    let [mut first, second] = pair(folder.path(), "1000000");
    until_printed(&mut first, "epoch   2/");
    signal(&second, Signal::SIGTERM);
    let [first, second] = both_end([first, second]);
    assert_eq!((first.status.code(), second.status.code()), (Some(143), Some(143)));
    let output = stdout(&first);
    let (_, step) = output.rsplit_once("checkpoint of step ").expect("the first rank saves");
    let [first, second] = both_end(pair(folder.path(), "1"));
    assert!(first.status.success() && second.status.success(), "{first:?} {second:?}");
    assert!(stdout(&first).contains(&format!("resumed at step {step}")), "{first:?}");
}

#[test]
fn when_one_rank_is_killed_the_other_saves_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let [mut first, second] = pair(folder.path(), "1000000");
    until_printed(&mut first, "epoch   1/");
    signal(&second, Signal::SIGKILL);
    let mut errors = String::new();
    first.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    let [first, _] = both_end([first, second]);
    assert_eq!(first.status.code(), Some(1));
    assert!(errors.contains("is gone"), "{errors}");
    assert!(folder.path().join("0/digits.safetensors").exists(), "the finished steps are saved");
}

#[test]
fn the_error_of_a_missing_group_names_the_variable() {
    let output =
        command(&std::env::temp_dir(), "1").arg("--data-parallel").env_remove("RANK").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("RANK") && stderr.contains("--launch per-gpu"), "{stderr}");
}
