//! A cluster of real processes, with the actions and checks that tests use.

mod attempt_log;
mod cgroup;
mod faults;
mod proxy;
mod screen;
mod small_disk;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use attempt_log::AttemptLog;
pub(crate) use cgroup::Cgroup;
pub(crate) use faults::{FakeClock, FakeDisk, kill_hard};
pub(crate) use proxy::Proxy;
pub(crate) use screen::Screen;
pub(crate) use small_disk::SmallDisk;

/// A time limit longer than any step takes on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Cluster {
    folder: TempDir,
    /// The release of new workers and of the command line.
    program: PathBuf,
    head: Daemon,
    workers: Vec<Daemon>,
    /// Of the workers that have one.
    cgroups: BTreeMap<usize, Cgroup>,
}

/// A daemon, and the command that restarts it.
struct Daemon {
    program: PathBuf,
    arguments: Vec<String>,
    /// Additional environment variables.
    environment: Vec<(String, String)>,
    process: Child,
    ready: String,
}

/// The path of the binary, which `cargo test` built beside the tests.
pub(crate) fn binary() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let binary = tests.parent().and_then(Path::parent).unwrap().join("cohabit");
    assert!(
        binary.exists(),
        "{} is missing: run `cargo build` or `cargo test --workspace`",
        binary.display()
    );
    binary
}

/// The program that starts another one as another account.
const SWITCH_ACCOUNT: &str = "setpriv";

fn as_account(account: &User) -> Vec<String> {
    let (uid, gid) = (account.uid.to_string(), account.gid.to_string());
    ["--reuid", &uid, "--regid", &gid, "--clear-groups", "--"].map(str::to_owned).into()
}

/// A command line of this account with a clean environment.
pub(crate) fn cohabit_as(account: &User, folder: &Path) -> Command {
    let mut command = clean(Path::new(SWITCH_ACCOUNT), folder);
    command.args(as_account(account)).arg(binary());
    command
}

/// The command line with a clean environment, so that the developer's settings have no effect.
pub(crate) fn cohabit(folder: &Path) -> Command {
    clean(&binary(), folder)
}

fn clean(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir(folder).stdin(Stdio::null());
    command.env("PATH", std::env::var("PATH").unwrap()).env("HOME", folder);
    command
}

impl Daemon {
    fn start(
        folder: &Path,
        program: PathBuf,
        arguments: Vec<String>,
        environment: Vec<(String, String)>,
    ) -> Daemon {
        let mut command = clean(&program, folder);
        command.env("DAEMON_SECRET", "never for jobs").envs(environment.clone());
        command.args(&arguments).stdout(Stdio::piped());
        let log =
            std::fs::OpenOptions::new().create(true).append(true).open(folder.join("daemons.log")).unwrap();
        let mut process = command.stderr(log).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let log = || std::fs::read_to_string(folder.join("daemons.log")).unwrap();
        assert!(ready.starts_with("ready"), "{arguments:?} said {ready:?} and logged\n{}", log());
        Daemon { program, arguments, environment, process, ready }
    }

    /// The command for another start of the same daemon.
    fn again(&self, folder: &Path) -> Daemon {
        Daemon::start(folder, self.program.clone(), self.arguments.clone(), self.environment.clone())
    }

    fn signal(&mut self, signal: Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).unwrap();
        self.process.wait().unwrap();
    }
}

impl Cluster {
    /// Starts a head, and a worker for each of these device specifications.
    pub(crate) fn start(devices: &[&str]) -> Cluster {
        Cluster::with_policy("fifo", devices)
    }

    /// The same under this policy.
    pub(crate) fn with_policy(policy: &str, devices: &[&str]) -> Cluster {
        let mut cluster = Cluster::with_head(&["--policy", policy], &[]);
        for devices in devices {
            cluster.add_worker(devices);
        }
        cluster
    }

    /// The same with daemons and a command line of this release.
    pub(crate) fn of_release(program: PathBuf, devices: &[&str]) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Cluster::with_program(folder, program, &[], &["--policy", "fifo"]);
        for devices in devices {
            cluster.add_worker(devices);
        }
        cluster
    }

    /// Starts a head with these flags and these files in its state directory, without a worker.
    pub(crate) fn with_head(flags: &[&str], files: &[(&str, &str)]) -> Cluster {
        Cluster::with_head_in(tempfile::tempdir().unwrap(), &[], flags, files)
    }

    /// The same in this directory, with additional environment variables for the head.
    pub(crate) fn with_head_in(
        folder: TempDir,
        environment: &[(&str, &str)],
        flags: &[&str],
        files: &[(&str, &str)],
    ) -> Cluster {
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Cluster::with_program(folder, binary(), environment, flags)
    }

    fn with_program(
        folder: TempDir,
        program: PathBuf,
        environment: &[(&str, &str)],
        flags: &[&str],
    ) -> Cluster {
        let start = ["head", "start", "--listen", "127.0.0.1:0", "--state", "head"];
        let arguments = [&start[..], flags].concat().into_iter().map(str::to_owned).collect();
        let head = Daemon::start(folder.path(), program.clone(), arguments, owned(environment));
        let mut cluster = Cluster { folder, program, head, workers: Vec::new(), cgroups: BTreeMap::new() };
        // A restarted head must listen where its workers dial.
        let address = cluster.address();
        cluster.head.arguments[3] = address;
        cluster
    }

    pub(crate) fn add_worker(&mut self, devices: &str) {
        self.add_worker_with(devices, &[]);
    }

    pub(crate) fn add_worker_with(&mut self, devices: &str, flags: &[&str]) {
        self.add_worker_in(&[], devices, flags);
    }

    /// Adds a worker that runs this program.
    pub(crate) fn add_worker_of(&mut self, program: PathBuf, devices: &str) {
        let own = std::mem::replace(&mut self.program, program);
        self.add_worker(devices);
        self.program = own;
    }

    /// Adds a worker with additional environment variables.
    pub(crate) fn add_worker_in(&mut self, environment: &[(&str, &str)], devices: &str, flags: &[&str]) {
        self.add_worker_at(&self.address(), environment, devices, flags);
    }

    /// The same for a worker that reaches the head at this address.
    fn add_worker_at(&mut self, join: &str, environment: &[(&str, &str)], devices: &str, flags: &[&str]) {
        let number = self.workers.len();
        let (name, state) = (format!("node{number}"), format!("worker{number}"));
        let arguments =
            ["worker", "start", "--join", join, "--token-file", "head/worker.token", "--state", &state];
        let more = ["--name", &name, "--devices", devices];
        let arguments = arguments.iter().chain(&more).chain(flags).map(|it| (*it).to_owned()).collect();
        let cgroup = Cgroup::create();
        let (program, arguments) = match &cgroup {
            Some(cgroup) => cgroup.wrap(&self.program, arguments),
            None => (self.program.clone(), arguments),
        };
        self.workers.push(Daemon::start(self.folder.path(), program, arguments, owned(environment)));
        self.cgroups.extend(cgroup.map(|cgroup| (number, cgroup)));
    }

    /// Adds a worker that runs as this account, with a state directory and a copy of the token of its own.
    pub(crate) fn add_worker_as(&mut self, account: &User, devices: &str, flags: &[&str]) {
        let number = self.workers.len();
        let (name, join) = (format!("node{number}"), self.address());
        let (state, token) = (self.path(&format!("worker{number}")), self.path(&format!("token{number}")));
        std::fs::create_dir(&state).unwrap();
        std::fs::copy(self.folder.path().join("head/worker.token"), &token).unwrap();
        for path in [&state, &token] {
            chown(path, Some(account.uid.as_raw()), Some(account.gid.as_raw())).unwrap();
        }
        let mut arguments = as_account(account);
        let program = self.program.display().to_string();
        let start = [&program, "worker", "start", "--join", &join, "--token-file", &token, "--state", &state];
        let more = ["--name", &name, "--devices", devices];
        arguments.extend(start.iter().chain(&more).chain(flags).map(|it| (*it).to_owned()));
        let daemon = Daemon::start(self.folder.path(), SWITCH_ACCOUNT.into(), arguments, Vec::new());
        self.workers.push(daemon);
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The cgroup of the first worker, where the machine has cgroups for tests.
    pub(crate) fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroups.get(&0)
    }

    /// The address at which the head listens, from its ready line.
    pub(crate) fn address(&self) -> String {
        let at = self.head.ready.find("127.0.0.1:").expect("the ready line names the address");
        self.head.ready[at..].chars().take_while(|c| c.is_ascii_digit() || ".:".contains(*c)).collect()
    }

    pub(crate) fn ready_line(&self) -> &str {
        &self.head.ready
    }

    pub(crate) fn kill_head(&mut self) {
        self.head.signal(Signal::SIGKILL);
    }

    pub(crate) fn restart_head(&mut self) {
        self.head = self.head.again(self.folder.path());
    }

    /// The head is stopped, and started with these flags in addition.
    pub(crate) fn restart_head_with(&mut self, flags: &[&str]) {
        self.stop_head();
        self.head.arguments.extend(flags.iter().map(|it| (*it).to_owned()));
        self.restart_head();
    }

    /// The head ends as an operator would end it.
    pub(crate) fn stop_head(&mut self) {
        self.head.signal(Signal::SIGTERM);
    }

    pub(crate) fn kill_worker(&mut self, number: usize) {
        self.workers[number].signal(Signal::SIGKILL);
    }

    pub(crate) fn stop_worker(&mut self, number: usize) {
        self.workers[number].signal(Signal::SIGTERM);
    }

    pub(crate) fn restart_worker(&mut self, number: usize) {
        self.workers[number] = self.workers[number].again(self.folder.path());
    }

    /// A command that connects through the head's state directory, not run yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = clean(&self.program, self.folder.path());
        command.env("COHABIT_STATE", self.folder.path().join("head")).args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::from(self.command(arguments).output().unwrap())
    }

    /// Runs a command that must succeed. Returns its output.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?} failed: {}", ran.stderr);
        ran.stdout
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--output", "json"]].concat();
        serde_json::from_str(&self.ok(&arguments)).unwrap()
    }

    /// Creates a token with these flags in a file of mode 0600. Returns the file's path.
    pub(crate) fn token(&self, file: &str, flags: &[&str]) -> String {
        let text = self.ok(&[&["token", "create"], flags].concat());
        let path = self.folder.path().join(file);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path.display().to_string()
    }

    /// Submits `sh -c SCRIPT` with these flags. Returns the job's number.
    pub(crate) fn submit(&self, flags: &[&str], script: &str) -> String {
        let arguments = [&["submit", "--output", "quiet"], flags, &["--", "sh", "-c", script]].concat();
        self.ok(&arguments).trim().to_owned()
    }

    pub(crate) fn show(&self, job: &str) -> Value {
        self.json(&["show", job])
    }

    pub(crate) fn state(&self, job: &str) -> String {
        self.show(job)["state"].as_str().unwrap().to_owned()
    }

    /// Waits for the job's end. Returns its final JSON document.
    pub(crate) fn end(&self, job: &str) -> Value {
        self.run(&["wait", job]);
        let shown = self.show(job);
        assert!(!shown["ended_at"].is_null(), "{shown}");
        shown
    }

    /// Waits for the job's end, which must be success in this attempt. Returns its final JSON document.
    #[track_caller]
    pub(crate) fn completed_in(&self, attempt: u64, job: &str) -> Value {
        let ended = self.end(job);
        let found = (ended["state"].as_str(), ended["attempt"].as_u64());
        assert_eq!(found, (Some("COMPLETED"), Some(attempt)), "{ended}");
        ended
    }

    pub(crate) fn until_state(&self, job: &str, state: &str) {
        until(&format!("job {job} is {state}"), || self.state(job) == state);
    }

    /// A path inside the cluster's directory, for jobs to write to.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub(crate) fn until_file(&self, name: &str) {
        until(&format!("{name} exists"), || self.folder.path().join(name).exists());
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

fn owned(environment: &[(&str, &str)]) -> Vec<(String, String)> {
    environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

/// The result of a command.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> CommandOutput {
        CommandOutput {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

#[expect(clippy::print_stderr, reason = "whoever runs the tests should know what they could not try")]
pub(crate) fn say(what: &str) {
    eprintln!("{what}");
}

/// Waits until the condition holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    until_within(TIMEOUT, what, holds);
}

/// The same with a longer limit, for conditions that take long by design.
pub(crate) fn until_within(patience: Duration, what: &str, holds: impl Fn() -> bool) {
    let patience = patience * slowness();
    let begin = Instant::now();
    while !holds() {
        let waited = begin.elapsed();
        assert!(waited < patience, "never: {what}");
        // What takes long is asked for less often: a question is mostly a process.
        std::thread::sleep((waited / 8).clamp(Duration::from_millis(20), Duration::from_millis(100)));
    }
}

/// How many times longer than elsewhere everything takes, on a machine that is interpreted.
fn slowness() -> u32 {
    std::env::var("COHABIT_TEST_PATIENCE").map_or(1, |times| times.parse().unwrap())
}

/// Processes on this machine whose environment or command line contains the text.
pub(crate) fn processes_with(mark: &str) -> Vec<i32> {
    let mentions = |pid: &i32| {
        let read = |name: &str| {
            let mut bytes = Vec::new();
            let opened = std::fs::File::open(format!("/proc/{pid}/{name}"));
            let _ = opened.and_then(|mut file| file.read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).contains(mark)
        };
        read("cmdline") || read("environ")
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(mentions).collect()
}

/// Ends what a failed test leaves behind: daemons, executors and ranks, found by the cluster's directory.
impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self.workers.iter_mut().chain([&mut self.head]) {
            let _ = daemon.process.kill();
            let _ = daemon.process.wait();
        }
        for pid in processes_with(&self.folder.path().display().to_string()) {
            if pid != std::process::id() as i32 {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }
}
