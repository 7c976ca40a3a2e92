//! Head and worker as separate processes, in a directory that is removed with the head.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use cohabit_net::{ClientServiceClient, Endpoint, Token, connect_client};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::Process;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A head and its directory. Dropping it ends the process and removes the directory.
pub(crate) struct HeadProcess {
    folder: TempDir,
    policy: String,
    /// An environment variable of the head.
    setting: Option<(&'static str, &'static str)>,
    process: Child,
    address: String,
}

/// A worker. Dropping it ends the process.
pub(crate) struct WorkerProcess {
    process: Child,
}

/// Resource usage of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessUsage {
    pub(crate) processor: Duration,
    /// Resident memory now, in bytes.
    pub(crate) resident: u64,
    /// Peak resident memory, in bytes.
    pub(crate) peak: u64,
}

impl HeadProcess {
    /// A new cluster under the default policy.
    pub(crate) async fn start() -> HeadProcess {
        HeadProcess::with_policy("hybrid").await
    }

    pub(crate) async fn with_policy(policy: &str) -> HeadProcess {
        HeadProcess::with_setting(policy, None).await
    }

    pub(crate) async fn with_setting(
        policy: &str,
        setting: Option<(&'static str, &'static str)>,
    ) -> HeadProcess {
        let folder = tempfile::tempdir().unwrap();
        let (process, address) = launch_head(folder.path(), policy, setting).await;
        HeadProcess { folder, policy: policy.to_owned(), setting, process, address }
    }

    /// Kills the head and starts it again. Returns the time until it was ready.
    pub(crate) async fn crash_and_start(&mut self) -> Duration {
        kill(self.pid(), Signal::SIGKILL).unwrap();
        self.process.wait().await.unwrap();
        let begin = Instant::now();
        (self.process, self.address) = launch_head(self.folder.path(), &self.policy, self.setting).await;
        begin.elapsed()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends the process. Returns the folder with its state, which is removed when it is dropped.
    pub(crate) fn into_folder(self) -> TempDir {
        self.folder
    }

    /// Opens a link with the admin token.
    pub(crate) async fn client(&self) -> ClientServiceClient {
        self.client_of("admin.token").await
    }

    /// Creates a token of a user. Returns its file in the head's directory.
    pub(crate) async fn create_user(&self, name: &str) -> String {
        let text = self.cohabit(&["token", "create", "--role", "user", "--name", name]).await;
        let file = format!("{name}.token");
        let path = self.token_file(&file);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        file
    }

    /// Opens a link with the token in this file of the head's directory.
    pub(crate) async fn client_of(&self, token: &str) -> ClientServiceClient {
        connect_client(&self.endpoint(token)).await.unwrap().0
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn token_file(&self, name: &str) -> PathBuf {
        self.folder().join("head").join(name)
    }

    pub(crate) fn endpoint(&self, token: &str) -> Endpoint {
        let token = Token::read_file(&self.token_file(token)).unwrap();
        Endpoint { address: self.address.clone(), token }
    }

    /// Runs a command. Returns its output without the final newline.
    pub(crate) async fn cohabit(&self, arguments: &[&str]) -> String {
        let mut command = command(self.folder());
        command.args(arguments).env("COHABIT_STATE", "head").stdin(Stdio::null());
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) fn usage(&self) -> ProcessUsage {
        usage(self.pid())
    }

    fn pid(&self) -> Pid {
        pid(&self.process)
    }
}

impl WorkerProcess {
    /// Starts a worker with these devices and joins it to this head.
    pub(crate) async fn start(head: &HeadProcess, devices: &str) -> WorkerProcess {
        let arguments = ["worker", "start", "--join", &head.address, "--token-file", "head/worker.token"];
        let arguments = [&arguments[..], &["--state", "worker", "--devices", devices]].concat();
        WorkerProcess { process: launch(head.folder(), &arguments, None).await.0 }
    }

    pub(crate) fn usage(&self) -> ProcessUsage {
        usage(pid(&self.process))
    }

    /// Usage of the watchdog of an executor that waits, and of that executor.
    pub(crate) fn usage_of_executor(&self) -> [ProcessUsage; 2] {
        let watchdog = first_child(pid(&self.process));
        [usage(watchdog), usage(first_child(watchdog))]
    }
}

fn first_child(parent: Pid) -> Pid {
    let tasks = Process::new(parent.as_raw()).unwrap().tasks().unwrap();
    let child = tasks.flatten().find_map(|task| task.children().ok()?.first().copied());
    Pid::from_raw(child.expect("an executor waits") as i32)
}

fn pid(process: &Child) -> Pid {
    Pid::from_raw(process.id().expect("it runs") as i32)
}

/// Resource usage of a process that was started here.
pub(crate) fn usage_of(process: &Child) -> ProcessUsage {
    usage(pid(process))
}

fn usage(pid: Pid) -> ProcessUsage {
    let process = Process::new(pid.as_raw()).unwrap();
    let (stat, status) = (process.stat().unwrap(), process.status().unwrap());
    let processor = (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64;
    let bytes = |kib: Option<u64>| kib.unwrap_or_default() << 10;
    ProcessUsage {
        processor: Duration::from_secs_f64(processor),
        resident: bytes(status.vmrss),
        peak: bytes(status.vmhwm),
    }
}

/// Formats bytes for people.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Starts the head and waits until it is ready. Returns the process and its address.
async fn launch_head(
    folder: &Path,
    policy: &str,
    setting: Option<(&'static str, &'static str)>,
) -> (Child, String) {
    let arguments = ["head", "start", "--listen", "127.0.0.1:0", "--state", "head", "--policy", policy];
    let (process, ready) = launch(folder, &arguments, setting).await;
    let (_, rest) = ready.split_once("listening on ").expect("it says where it listens");
    (process, rest.split(';').next().unwrap_or_default().to_owned())
}

/// Starts a daemon and waits until it is ready. Returns the process and the ready line.
async fn launch(folder: &Path, arguments: &[&str], setting: Option<(&str, &str)>) -> (Child, String) {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    let mut command = command(folder);
    command.args(arguments).envs(setting);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
    let mut process = command.spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut ready).await.unwrap();
    let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    assert!(ready.starts_with("ready"), "{arguments:?} is not ready:\n{}", log());
    (process, ready)
}

/// The binary in this working directory, with only `PATH` of our environment.
fn command(folder: &Path) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(folder).env_clear().env("HOME", folder).env("PATH", "/usr/bin:/bin");
    command
}

/// The path of the binary, built beside this one.
pub(crate) fn binary() -> PathBuf {
    let path = std::env::current_exe().unwrap().with_file_name("cohabit");
    assert!(path.exists(), "{} is missing: build it with the same profile", path.display());
    path
}
