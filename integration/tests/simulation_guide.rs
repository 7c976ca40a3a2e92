//! The walks in docs/SIMULATION.md run as they stand: a researcher copies one command after the other.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// The sections that are walks, in their order.
const WALKS: [&str; 2] = ["## From a trace to a comparison", "## Predicting slowdowns"];
/// The command that does not end by itself.
const DAEMON: &str = "cohabit head start";

/// The blocks of commands of the walks.
fn blocks() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/SIMULATION.md");
    let text = fs::read_to_string(path).unwrap();
    let section = |heading: &&str| {
        let (_, rest) = text.split_once(&format!("\n{heading}\n")).expect("there is the section");
        rest.split("\n## ").next().unwrap().to_owned()
    };
    let sections: Vec<String> = WALKS.iter().map(section).collect();
    let blocks = sections.iter().flat_map(|section| section.split("```sh\n").skip(1));
    blocks.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// A shell in a directory, which finds the program as `cohabit` and no settings of the developer.
fn shell(folder: &Path, script: &str) -> Command {
    let tests = std::env::current_exe().unwrap();
    let programs: PathBuf = tests.parent().and_then(Path::parent).unwrap().into();
    assert!(programs.join("cohabit").exists(), "run `cargo build` or `cargo test --workspace`");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.env_clear().current_dir(folder).args(["-eu", "-c", script]);
    shell.env("PATH", format!("{}:{path}", programs.display())).env("HOME", folder);
    shell.env("COHABIT_LISTEN", "127.0.0.1:0").env("COHABIT_STATE", folder.join("state"));
    shell
}

/// Runs a block and returns what it printed.
fn run(folder: &Path, block: &str) -> (String, String) {
    let output = shell(folder, block).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, messages) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{block}\n{printed}\n{messages}");
    (printed, messages)
}

/// Starts a daemon, waits until it is ready, and ends it.
fn start_and_stop(folder: &Path, block: &str) {
    let mut shell = shell(folder, &format!("exec {block}"));
    let mut daemon = shell.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    kill(Pid::from_raw(daemon.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let status = daemon.wait().unwrap();
    assert!(ready.starts_with("ready"), "{block}: {ready:?}, {status}");
}

fn document(folder: &Path, file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join(file)).unwrap()).unwrap()
}

#[test]
fn the_walks_of_the_guide_run_as_they_stand() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (mut printed, mut messages, mut daemons) = (String::new(), String::new(), 0);
    let blocks = blocks();
    assert!(blocks.len() >= 8, "the guide has {} blocks", blocks.len());
    for block in &blocks {
        if block.starts_with(DAEMON) {
            start_and_stop(folder, block);
            daemons += 1;
            continue;
        }
        let (more, told) = run(folder, block);
        (printed, messages) = (printed + &more, messages + &told);
    }
    assert_eq!(daemons, 1);
    // What the guide says about the results of its commands.
    for words in
        ["LEFT OUT", "1  need more GPUs than the cluster has", "hybrid 200 jobs, mean JCT", "without models"]
    {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    assert!(messages.contains("warning: the offered load is"), "{messages}");
    let policies: Vec<String> = document(folder, "results.json")["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["policy"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(policies, ["fifo", "easy-backfill", "a-srpt", "hybrid"]);
    assert!(document(folder, "pretrained.json")["mape_slowdown"].is_number());
    for page in ["report.html", "training.html"] {
        assert!(fs::read_to_string(folder.join(page)).unwrap().ends_with("</html>\n"), "{page}");
    }
}
