//! Tests of the PyTorch programs. On a machine without PyTorch they are skipped, with a message.

#![expect(clippy::unwrap_used, reason = "a failed test step ends the test")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The Python interpreter: `$PYTHON`, or `python3`.
fn python() -> Command {
    let mut command = Command::new(std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into()));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pytorch")
}

/// Whether Python can import the module; prints a message if not.
#[expect(clippy::print_stderr, reason = "skipped tests must be visible in the output")]
fn has(module: &str) -> bool {
    let imported = python().args(["-c", &format!("import {module}")]).stderr(Stdio::null()).status();
    let has = imported.is_ok_and(|status| status.success());
    if !has {
        eprintln!("skipped: python3 has no module {module}");
    }
    has
}

/// Starts a rank of `digits_ddp.py` as a job would.
fn rank(rank: u32, port: u16, folder: &Path, epochs: &str) -> Child {
    let mut command = python();
    command.arg(programs().join("digits_ddp.py")).args(["--epochs", epochs, "--hidden", "32"]);
    command.env("RANK", rank.to_string()).env("WORLD_SIZE", "2").env("LOCAL_RANK", rank.to_string());
    command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string());
    command.env("PYTHONPATH", programs().join("../../client/python/python"));
    command.env("COHABIT_JOB_ID", "1").env("COHABIT_CHECKPOINT_DIR", folder.join(rank.to_string()));
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// The output of the two ranks.
fn trained(folder: &Path, epochs: &str) -> [String; 2] {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let ranks = [0, 1].map(|number| rank(number, port, folder, epochs));
    ranks.map(|rank| {
        let output = rank.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    })
}

/// The names of the checkpoints in this directory.
fn checkpoints(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = entries.map(|name| name.into_string().unwrap());
    names.filter(|name| name.ends_with(".ckpt")).collect()
}

#[test]
fn every_program_is_valid_python() {
    if !has("ast") {
        return;
    }
    let read = "import ast, pathlib, sys
read = [ast.parse(it.read_text(), it) for place in sys.argv[1:] for it in pathlib.Path(place).rglob('*.py')]
assert len(read) > 30, len(read)";
    let device = programs().join("../../integration/device");
    assert!(python().args(["-c", read]).arg(programs()).arg(device).status().unwrap().success());
}

#[test]
fn two_ranks_train_together_and_resume_from_the_checkpoint_of_the_first() {
    if !has("torch") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = trained(folder.path(), "15");
    assert!(first.contains("accuracy 9") && second.is_empty(), "{first} {second}");
    // An epoch has 45 steps, and a checkpoint is named after the step that was done last.
    let saved = checkpoints(&folder.path().join("0"));
    assert!(saved.iter().any(|name| name.ends_with("-step674.ckpt")), "{saved:?}");
    assert!(!folder.path().join("1").exists(), "only the first rank saves");
    let [resumed, _] = trained(folder.path(), "16");
    assert!(resumed.contains("resumed at step 675\n") && resumed.contains("accuracy 9"), "{resumed}");
}
