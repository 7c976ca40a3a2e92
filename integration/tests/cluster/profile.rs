//! `cohabit profile` on a fake GPU: what it measures, what it skips, and how it stops.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use cohabit_fakes::{FakeGpu, FakeWorld, Installed, Performance, examples};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::kit::{CommandOutput, cohabit, processes_with, until};

/// A machine with one fake GPU, and the path of the table.
struct Bench {
    folder: TempDir,
    installed: Installed,
}

/// A row of the table, by its columns.
type Row = std::collections::BTreeMap<String, String>;

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let monitored = Performance { sm_active: 40.0, ..Performance::default() };
        let gpu = FakeGpu { utilization: 50, performance: Some(monitored), ..FakeGpu::numbered(0) };
        let world = FakeWorld::create(&folder.path().join("world"), vec![gpu]).unwrap();
        let installed = world.install(&examples().unwrap()).unwrap();
        Bench { folder, installed }
    }

    /// Writes the workloads: a name, and the arguments of the fake training.
    fn workloads(&self, all: &[(&str, &str)]) {
        let client = self.installed.client.display().to_string();
        let one = |(name, arguments): &(&str, &str)| {
            let words: Vec<&str> =
                [client.as_str()].into_iter().chain(arguments.split_whitespace()).collect();
            let command = serde_json::to_string(&words).unwrap();
            format!("[[workloads]]\nname = '{name}'\nmodel = '{name}-net'\nbatch = 8\ncommand = {command}\n")
        };
        let text: String = all.iter().map(one).collect();
        fs::write(self.folder.path().join("w.toml"), text).unwrap();
    }

    fn command(&self, flags: &[&str]) -> Command {
        let mut command = cohabit(self.folder.path());
        command.env("PATH", self.installed.search_path());
        command.env("COHABIT_NVML_LIBRARY", &self.installed.nvml);
        command.env("COHABIT_STATE", self.folder.path().join("state"));
        command.args(["profile", "--workloads", "w.toml", "--out", "t.csv", "--yes"]);
        let steady = if flags.contains(&"--steady") { &[][..] } else { &["--steady", "600ms"] };
        command.args(["--warm-up", "100ms"]).args(steady).args(flags);
        command
    }

    fn run(&self, flags: &[&str]) -> CommandOutput {
        CommandOutput::from(self.command(flags).output().unwrap())
    }

    fn start(&self, flags: &[&str]) -> Child {
        self.command(flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn table(&self) -> PathBuf {
        self.folder.path().join("t.csv")
    }

    fn rows(&self) -> Vec<Row> {
        let text = fs::read_to_string(self.table()).unwrap_or_default();
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let headings = lines.next().unwrap_or_default();
        lines.map(|cells| headings.iter().cloned().zip(cells).collect()).collect()
    }

    /// Members of all sets with this kind of sharing.
    fn sets(&self, sharing: &str) -> Vec<Vec<String>> {
        let rows = self.rows();
        let ours: Vec<&Row> = rows.iter().filter(|row| row["sharing"] == sharing).collect();
        let sets = ours.chunk_by(|a, b| a["set"] == b["set"]);
        let mut sets: Vec<Vec<String>> =
            sets.map(|set| set.iter().map(|row| row["workload"].clone()).collect()).collect();
        sets.sort();
        sets
    }

    fn details(&self) -> Value {
        serde_json::from_slice(&fs::read(self.folder.path().join("t.csv.json")).unwrap()).unwrap()
    }

    /// Checks that no workload and no MPS daemon is left.
    fn nothing_is_left(&self) {
        until("nothing is left", || processes_with(&self.folder.path().display().to_string()).is_empty());
    }
}

/// Ends what a failed test leaves behind.
impl Drop for Bench {
    fn drop(&mut self) {
        for pid in processes_with(&self.folder.path().display().to_string()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?}"))
}

const ENDLESS: &str = "--steps 1000000 --rate 100 --alloc 2G";
/// Steps a second of such a workload that is alone.
const NOMINAL_RATE: f64 = 100.0;

#[test]
fn workloads_are_measured_alone_by_turns_and_under_mps_and_only_once() {
    let bench = Bench::new();
    bench.workloads(&[("a", ENDLESS), ("b", ENDLESS)]);
    let ran = bench.run(&["--triples", "1", "--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let pairs = [["a", "a"], ["a", "b"], ["b", "b"]].map(|pair| pair.map(str::to_owned).to_vec());
    let alone = [vec!["a".to_owned()], vec!["b".to_owned()]];
    assert_eq!(bench.sets("exclusive"), alone);
    let shared = |sharing: &str, size: usize| -> Vec<Vec<String>> {
        bench.sets(sharing).into_iter().filter(|set| set.len() == size).collect()
    };
    for sharing in ["time-sliced", "mps"] {
        assert_eq!(shared(sharing, 2), pairs, "{sharing}");
        assert_eq!(shared(sharing, 3).len(), 1, "{sharing}");
    }
    assert_eq!((shared("mps", 1), shared("time-sliced", 1).len()), (alone.to_vec(), 0));
    let rows = bench.rows();
    for row in &rows {
        assert_eq!((row["feasible"].as_str(), row["mem"].as_str()), ("true", "2147483648"), "{row:?}");
        assert_eq!((row["gpu"].as_str(), row["util"].as_str()), ("Fake H200 (not a GPU)", "0.5"));
        assert_eq!(row["solo_sm_active"], "0.4");
    }
    // By turns nobody is faster than that, however busy this machine is; under MPS the machine decides.
    for row in rows.iter().filter(|row| row["sharing"] == "time-sliced") {
        let members = rows.iter().filter(|other| other["set"] == row["set"]).count() as f64;
        assert!(number(row, "rate") < 1.2 * NOMINAL_RATE / members, "{row:?}");
    }
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&document["schema"], &document["added"], &document["left"]),
        (&1.into(), &12.into(), &0.into())
    );
    assert_eq!(document["sharing"][1]["sharing"], "mps");
    assert_eq!(bench.details()["runs"][0]["gpu"]["gpu"]["driver"], "580.159.03");
    bench.nothing_is_left();

    let before = fs::read(bench.table()).unwrap();
    let again = bench.run(&["--triples", "1", "--output", "json"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(serde_json::from_str::<Value>(&again.stdout).unwrap()["added"], 0);
    assert_eq!(fs::read(bench.table()).unwrap(), before);
}

#[test]
fn a_set_that_does_not_fit_is_infeasible_and_a_failure_alone_is_not_measured() {
    let bench = Bench::new();
    bench.workloads(&[
        ("huge", "--steps 1000000 --alloc 100G"),
        ("short", "--steps 3 --rate 100"),
        ("broken", "--no-such-flag"),
    ]);
    let ran = bench.run(&["--sharing", "exclusive,time-sliced", "--set-sizes", "1,2"]);
    assert_eq!(ran.code, 65, "{}", ran.stderr);
    for words in ["short ended by itself", "broken exited with code 2", "broken does not run alone"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    let rows = bench.rows();
    let pair: Vec<&Row> = rows.iter().filter(|row| row["sharing"] == "time-sliced").collect();
    assert_eq!((rows.len(), pair.len()), (3, 2), "{rows:?}");
    for row in pair {
        assert_eq!(
            (row["workload"].as_str(), row["feasible"].as_str(), row["rate"].as_str()),
            ("huge", "false", "")
        );
        assert!(number(row, "solo_rate") > 0.0);
    }
    let details = bench.details();
    assert!(details["sets"][1]["reason"].as_str().unwrap().contains("CUDA out of memory"), "{details}");
    assert_eq!(details["not_measured"].as_array().unwrap().len(), 7, "{details}");
    bench.nothing_is_left();
}

#[test]
fn after_an_interrupt_the_same_command_continues() {
    let bench = Bench::new();
    bench.workloads(&[("a", ENDLESS), ("b", ENDLESS)]);
    let flags = ["--set-sizes", "1,2", "--sharing", "exclusive,mps", "--pairs", "1"];
    let child = bench.start(&flags);
    until("two sets are measured", || bench.rows().len() >= 2);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let ran = CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("run the same command again"), "{}", ran.stderr);
    bench.nothing_is_left();
    let before = fs::read_to_string(bench.table()).unwrap();
    let ran = bench.run(&flags);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(fs::read_to_string(bench.table()).unwrap().starts_with(&before));
    assert_eq!((bench.sets("exclusive").len(), bench.sets("mps").len()), (2, 3));
}

#[test]
fn a_command_ends_at_its_time_limit_and_reports_what_is_left() {
    let bench = Bench::new();
    bench.workloads(&[("a", ENDLESS), ("b", ENDLESS)]);
    let ran = bench.run(&["--max-time", "1ms", "--output", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&document["stopped"], &document["added"]), (&"time_over".into(), &0.into()));
    assert!(document["left"].as_u64().unwrap() > 0);
    assert!(ran.stderr.contains("run the same command again"), "{}", ran.stderr);
}

#[test]
fn a_gpu_in_use_is_refused_with_the_process() {
    let bench = Bench::new();
    bench.workloads(&[("a", ENDLESS)]);
    let mut other = Command::new(&bench.installed.client);
    let mut other = other.args(ENDLESS.split_whitespace()).stdout(Stdio::null()).spawn().unwrap();
    let who = format!("PID {}", other.id());
    until("it is refused", || {
        let ran = bench.run(&["--sharing", "exclusive", "--max-time", "1ms"]);
        ran.code == 75 && ran.stderr.contains(&who) && ran.stderr.contains("2 GiB")
    });
    assert_eq!(bench.run(&["--sharing", "exclusive", "--max-time", "1ms", "--force"]).code, 0);
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn a_workload_that_bypasses_mps_is_not_measured_as_an_mps_client() {
    let bench = Bench::new();
    bench.workloads(&[("a", &format!("{ENDLESS} --bypass-mps"))]);
    let ran = bench.run(&["--sharing", "exclusive,mps", "--set-sizes", "1"]);
    assert_eq!(ran.code, 65, "{}", ran.stderr);
    assert!(ran.stderr.contains("a is not a client of the MPS server"), "{}", ran.stderr);
    assert_eq!((bench.sets("exclusive").len(), bench.sets("mps").len()), (1, 0));
}

#[test]
fn a_workload_that_does_not_end_is_taken_off_the_server_and_killed() {
    let bench = Bench::new();
    bench.workloads(&[("a", &format!("{ENDLESS} --ignore-term"))]);
    let ran = bench.run(&["--sharing", "exclusive,mps", "--set-sizes", "1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(bench.sets("mps").len(), 1);
    bench.nothing_is_left();
}

#[test]
fn no_worker_runs_while_its_gpus_are_measured() {
    let bench = Bench::new();
    bench.workloads(&[("a", ENDLESS)]);
    let child = bench.start(&["--sharing", "exclusive", "--steady", "5s"]);
    until("it has begun", || bench.folder.path().join("state/worker/profile").exists());
    let second = bench.run(&["--sharing", "exclusive", "--max-time", "1ms"]);
    assert_eq!(second.code, 75, "{}", second.stderr);
    assert!(second.stderr.contains("uses the state directory"), "{}", second.stderr);
    assert!(child.wait_with_output().unwrap().status.success());
}
