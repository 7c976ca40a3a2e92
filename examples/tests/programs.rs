//! The programs as processes: output, progress, signals, exit codes and checkpoints.
//!
//! No test waits for a fixed time: it reads the output of the program until the expected line appears.

#![expect(clippy::unwrap_used, reason = "a failed test step ends the test")]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use candle_core::{Device, Tensor};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const DIGITS: &str = env!("CARGO_BIN_EXE_digits");
const CHARLM: &str = env!("CARGO_BIN_EXE_charlm");
/// Options for short steps, unless a test gives its own.
const SMALL: [&str; 4] = ["--hidden", "32", "--batch-size", "64"];
const STEPS_PER_EPOCH: u64 = 23;

/// A directory for checkpoints and progress, and programs that run in it.
struct TestFolder(tempfile::TempDir);

impl TestFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn progress(&self) -> PathBuf {
        self.0.path().join("progress")
    }

    fn checkpoint(&self, program: &str) -> PathBuf {
        self.0.path().join(program).with_extension("safetensors")
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        let small: &[&str] = if arguments.contains(&"--hidden") { &[] } else { &SMALL };
        command.args(small).args(arguments).env_remove("RAYON_NUM_THREADS");
        command.env("COHABIT_CHECKPOINT_DIR", self.0.path()).env("COHABIT_PROGRESS", self.progress());
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().unwrap()
    }

    fn start(&self, program: &str, arguments: &[&str]) -> Training {
        let mut child = self.command(program, arguments).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Training { child, output }
    }

    fn tensors(&self, program: &str) -> HashMap<String, Tensor> {
        candle_core::safetensors::load(self.checkpoint(program), &Device::Cpu).unwrap()
    }
}

/// A running program.
struct Training {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Training {
    /// Reads until a line with `words` and returns it.
    fn line_with(&mut self, words: &str) -> String {
        self.output.by_ref().lines().map(|line| line.unwrap()).find(|line| line.contains(words)).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    fn exit_code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

/// Kills the program if the test fails.
impl Drop for Training {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The first number after `words` in `text`.
fn number_after(text: &str, words: &str) -> f64 {
    let (_, rest) = text.split_once(words).unwrap_or_else(|| panic!("no {words:?} in {text}"));
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
    rest[..end].parse().unwrap()
}

fn assert_same_bits(left: &HashMap<String, Tensor>, right: &HashMap<String, Tensor>) {
    assert_eq!(left.len(), right.len());
    for (name, tensor) in left {
        let bits = |tensor: &Tensor| -> Vec<u32> {
            tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
        };
        assert!(bits(tensor) == bits(&right[name]), "{name} differs");
    }
}

/// Interrupts a training after `first_line`, resumes it, and compares the result with an uninterrupted one.
fn interrupted_and_resumed(program: &str, name: &str, flag: &str, steps_per_unit: u64, first_line: &str) {
    let (interrupted, uninterrupted) = (TestFolder::new(), TestFolder::new());
    let mut training = interrupted.start(program, &[flag, "1000000"]);
    training.line_with(first_line);
    training.signal(Signal::SIGTERM);
    let step = number_after(&training.line_with("asked to end after step"), "checkpoint of step ") as u64;
    assert_eq!(training.exit_code(), Some(143));
    let units = (step / steps_per_unit + 2).to_string();
    let output = interrupted.run(program, &[flag, &units]);
    assert!(stdout(&output).contains(&format!("resumed at step {step}\n")), "{output:?}");
    assert!(uninterrupted.run(program, &[flag, &units]).status.success());
    assert_same_bits(&interrupted.tensors(name), &uninterrupted.tensors(name));
}

#[test]
fn digits_interrupted_by_sigterm_and_resumed_ends_with_the_same_bits() {
    interrupted_and_resumed(DIGITS, "digits", "--epochs", STEPS_PER_EPOCH, "epoch   2/");
}

#[test]
fn charlm_interrupted_by_sigterm_and_resumed_ends_with_the_same_bits() {
    interrupted_and_resumed(CHARLM, "charlm", "--steps", 1, "step    20/");
}

#[test]
fn a_warning_saves_a_checkpoint_and_the_training_continues() {
    let place = TestFolder::new();
    let mut training = place.start(DIGITS, &["--epochs", "1000000"]);
    training.line_with("epoch   1/");
    assert!(!place.checkpoint("digits").exists());
    training.signal(Signal::SIGUSR1);
    let step = number_after(&training.line_with("warned after step"), "checkpoint of step ");
    assert!(step >= STEPS_PER_EPOCH as f64 && place.checkpoint("digits").exists());
    training.line_with("epoch ");
    training.signal(Signal::SIGTERM);
    assert_eq!(training.exit_code(), Some(143));
}

#[test]
fn without_a_directory_sigterm_stops_the_training_without_saving() {
    let place = TestFolder::new();
    let mut command = place.command(DIGITS, &["--epochs", "1000000"]);
    let mut child = command.env_remove("COHABIT_CHECKPOINT_DIR").stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut training = Training { child, output };
    training.line_with("epoch   1/");
    training.signal(Signal::SIGTERM);
    assert!(training.line_with("asked to end").contains("nothing saved"));
    assert_eq!(training.exit_code(), Some(143));
}

#[test]
fn charlm_learns_more_than_character_frequencies() {
    let place = TestFolder::new();
    let output = place.run(CHARLM, &["--hidden", "64", "--batch-size", "16", "--steps", "200"]);
    let text = stdout(&output);
    let (entropy, loss) = (number_after(&text, "has a loss of "), number_after(&text, "\nloss "));
    assert!(loss < entropy - 0.6, "{loss} but {entropy}");
    let (before, after) =
        (number_after(&text, "step    20/200  loss "), number_after(&text, "200/200  loss "));
    assert!(after < before - 0.6, "{text}");
}

#[test]
fn progress_lines_are_json_with_a_falling_loss_up_to_the_last_step() {
    let place = TestFolder::new();
    assert!(place.run(DIGITS, &["--epochs", "20"]).status.success());
    let text = std::fs::read_to_string(place.progress()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    assert_eq!((first["step"].as_u64(), first["total"].as_u64()), (Some(1), Some(20 * STEPS_PER_EPOCH)));
    assert_eq!(last["step"], last["total"]);
    assert!(last["loss"].as_f64() < first["loss"].as_f64());
}

#[test]
fn a_progress_path_that_cannot_be_opened_does_not_stop_the_training() {
    let place = TestFolder::new();
    let output = place.command(DIGITS, &["--epochs", "1"]).env("COHABIT_PROGRESS", "/no/such/place").output();
    let output = output.unwrap();
    assert!(output.status.success() && stderr(&output).starts_with("warning: progress is not reported"));
}

#[test]
fn a_damaged_checkpoint_is_reported_ignored_and_replaced() {
    let place = TestFolder::new();
    let whole = |place: &TestFolder| std::fs::read(place.checkpoint("digits")).unwrap();
    assert!(place.run(DIGITS, &["--epochs", "2"]).status.success());
    let cut = whole(&place).split_off(100);
    std::fs::write(place.checkpoint("digits"), cut).unwrap();
    let output = place.run(DIGITS, &["--epochs", "2"]);
    assert!(output.status.success() && !stdout(&output).contains("resumed"));
    assert!(stderr(&output).starts_with("warning: ignoring the damaged checkpoint"), "{output:?}");
    assert!(stdout(&place.run(DIGITS, &["--epochs", "2"])).contains("resumed at step 46\n"));
}

#[test]
fn a_checkpoint_with_other_options_is_an_error_and_kept() {
    let place = TestFolder::new();
    assert!(place.run(DIGITS, &["--epochs", "1"]).status.success());
    let before = std::fs::read(place.checkpoint("digits")).unwrap();
    let output = place.run(DIGITS, &["--epochs", "1", "--seed", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("(--seed was 1, is now 2)"), "{output:?}");
    assert_eq!(std::fs::read(place.checkpoint("digits")).unwrap(), before);
}

#[test]
fn a_wrong_option_exits_with_2_and_is_named() {
    for wrong in [["--epochs", "0"], ["--learning-rate", "-1"], ["--threads", "many"], ["--speed", "11"]] {
        let output = TestFolder::new().run(DIGITS, &wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(stderr(&output).contains(wrong[0]), "{output:?}");
    }
}

#[test]
fn the_error_of_a_bad_directory_names_it() {
    let output = TestFolder::new().run(DIGITS, &["--checkpoint", "/dev/null/checkpoints"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("/dev/null/checkpoints"), "{output:?}");
    assert!(!Path::new("/dev/null/checkpoints").exists());
}
