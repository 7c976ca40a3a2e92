//! A world of fake GPUs, and the words of its tests.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use cohabit_fakes::{FakeGpu, FakeWorld, Installed, examples};
use cohabit_gpu::mps::{MpsDaemon, MpsDirectory, MpsError, MpsPrograms, client_environment};
use cohabit_types::{Bytes, DeviceId};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A world with the fakes in it, and a pipe and a log directory for its first GPU.
pub(crate) struct Bench {
    folder: TempDir,
    pub(crate) world: FakeWorld,
    pub(crate) installed: Installed,
}

/// What a program did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn new(code: i32, stdout: &str, stderr: &str) -> Ran {
        Ran { code, stdout: stdout.into(), stderr: stderr.into() }
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran::new(output.status.code().unwrap_or(-1), &text(&output.stdout), &text(&output.stderr))
    }
}

impl Bench {
    /// One GPU that is well.
    pub(crate) fn new() -> Bench {
        Bench::of(vec![FakeGpu::numbered(0)])
    }

    /// These GPUs.
    pub(crate) fn of(gpus: Vec<FakeGpu>) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let world = FakeWorld::create(&folder.path().join("world"), gpus).unwrap();
        let installed = world.install(&examples().unwrap()).unwrap();
        for name in ["pipe", "log", "state"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Bench { folder, world, installed }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn gpu(&self) -> DeviceId {
        DeviceId(self.world.gpus()[0].uuid.as_str().into())
    }

    /// Scripts the first GPU anew.
    pub(crate) fn script(&self, edit: impl FnOnce(&mut FakeGpu)) {
        self.world.edit_gpu(&self.gpu().0, edit).unwrap();
    }

    /// A program with nothing in its environment but what it needs for the first GPU.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", self.installed.search_path())
            .env("CUDA_VISIBLE_DEVICES", self.gpu().as_str());
        command.env("CUDA_MPS_PIPE_DIRECTORY", self.path("pipe"));
        command.env("CUDA_MPS_LOG_DIRECTORY", self.path("log"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn control_program(&self) -> PathBuf {
        self.installed.bin.join("nvidia-cuda-mps-control")
    }

    /// `nvidia-cuda-mps-control -d`.
    pub(crate) fn start_daemon(&self) -> Ran {
        self.command(&self.control_program()).arg("-d").output().unwrap().into()
    }

    /// A daemon, and its server once it is active.
    pub(crate) fn start_server(&self) -> i32 {
        assert_eq!(self.start_daemon(), Ran::new(0, "", ""));
        assert_eq!(self.tell("start_server -uid 0\n"), "");
        until("there is a server", || !self.tell("get_server_list\n").is_empty());
        let server = self.tell("get_server_list\n").trim().parse().unwrap();
        self.until_server(server, "ACTIVE");
        server
    }

    pub(crate) fn until_server(&self, server: i32, state: &str) {
        let question = format!("get_server_status {server}\n");
        until(&format!("the server is {state}"), || self.tell(&question).trim() == state);
    }

    /// Commands to the control program; what it says, once it has said it all.
    pub(crate) fn control(&self, commands: &str) -> Ran {
        let mut session = self.command(&self.control_program()).stdin(Stdio::piped()).spawn().unwrap();
        // A program that was turned away does not listen.
        let _ = session.stdin.take().unwrap().write_all(commands.as_bytes());
        session.wait_with_output().unwrap().into()
    }

    /// The same, of commands that are carried out.
    pub(crate) fn tell(&self, commands: &str) -> String {
        let ran = self.control(commands);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{commands}");
        ran.stdout
    }

    /// A session that is open and waits for commands in this pipe directory.
    pub(crate) fn open_session(&self, pipe: &Path) -> Child {
        let mut command = self.command(&self.control_program());
        let mut session = command.env("CUDA_MPS_PIPE_DIRECTORY", pipe).stdin(Stdio::piped()).spawn().unwrap();
        session.stdin.as_mut().unwrap().write_all(b"get_default_active_thread_percentage\n").unwrap();
        let mut answer = [0; "100.0\n".len()];
        session.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"100.0\n");
        session
    }

    /// A client that is to look for the daemon of this bench.
    pub(crate) fn client(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&self.installed.client);
        command.args(arguments);
        command
    }

    /// Starts a client that goes on until it is stopped, and waits until it holds memory.
    pub(crate) fn endless(&self, command: &mut Command) -> Child {
        command.args(["--steps", "1000000", "--rate", "100"]);
        let client = command.spawn().unwrap();
        let pid = client.id() as i32;
        until("the client is on the GPU", || {
            self.world.processes_on(&self.gpu().0).iter().any(|process| process.pid == pid)
        });
        client
    }

    pub(crate) fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path("log").join(name)).unwrap_or_default()
    }

    pub(crate) fn tools(&self) -> MpsPrograms {
        MpsPrograms::find(&self.installed.search_path()).unwrap()
    }

    pub(crate) fn home(&self) -> MpsDirectory {
        MpsDirectory::create(&self.path("state"), &self.gpu()).unwrap()
    }

    /// A daemon for the first GPU, as Cohabit starts it.
    pub(crate) fn daemon(&self) -> Result<MpsDaemon, MpsError> {
        MpsDaemon::start(&self.tools(), &self.home(), &self.gpu(), geteuid().as_raw())
    }

    /// A client of that daemon with 8 GiB at most.
    pub(crate) fn member(&self, arguments: &[&str]) -> Command {
        let mut command = self.client(arguments);
        command.envs(client_environment(&self.home(), &self.gpu(), Bytes(8 << 30), None));
        command
    }
}

/// Waits until it is so.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process runs; one that waits for its parent to hear of its end does not.
pub(crate) fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// Ends a child at once; what it did until then.
pub(crate) fn end(mut child: Child) -> Ran {
    child.kill().unwrap();
    child.wait_with_output().unwrap().into()
}

/// What a child did that ends by itself.
pub(crate) fn ended(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

/// Ends what a test leaves behind, all found by the bench's directory.
impl Drop for Bench {
    fn drop(&mut self) {
        let mark = self.folder.path().display().to_string();
        let mentions = |pid: i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&mark)
        };
        let entries = fs::read_dir("/proc").unwrap();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        for pid in pids.filter(|pid| *pid != std::process::id() as i32 && mentions(*pid)) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
