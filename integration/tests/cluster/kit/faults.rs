//! Faults of a cluster: machines that go down, links that break, upgrades to another release, clocks that
//! step.

use std::path::{Path, PathBuf};
use std::process::Command;

use cohabit_fakes::examples;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Cluster, Daemon, Proxy, binary, processes_with, until};

impl Cluster {
    /// Adds a worker that reaches the head through this relay.
    pub(crate) fn add_worker_through(&mut self, wire: &Proxy, devices: &str, flags: &[&str]) {
        self.add_worker_at(wire.address(), &[], devices, flags);
    }

    pub(crate) fn node_state(&self, name: &str) -> String {
        let nodes = self.json(&["nodes"]);
        let node = nodes["nodes"].as_array().unwrap().iter().find(|node| node["name"] == name);
        node.and_then(|node| node["state"].as_str()).unwrap_or("unknown").to_owned()
    }

    pub(crate) fn until_node(&self, name: &str, state: &str) {
        until(&format!("{name} is {state}"), || self.node_state(name) == state);
    }

    /// The directory of the head is lost, and made again from this backup. Returns what the restore says.
    pub(crate) fn lose_and_restore(&mut self, backup: &str) -> Value {
        self.kill_head();
        std::fs::remove_dir_all(self.folder().join("head")).unwrap();
        let restored = self.json(&["head", "restore", backup, "--state", "head"]);
        self.restart_head();
        restored
    }

    /// Kills the daemon, executors and ranks of this machine at once.
    pub(crate) fn machine_dies(&mut self, number: usize) {
        self.kill_worker(number);
        let mark = self.path(&format!("worker{number}"));
        until("the machine is dead", || {
            let left = processes_with(&mark);
            left.iter().for_each(|pid| kill_hard(*pid));
            left.is_empty()
        });
    }

    /// Stops the daemon with SIGSTOP: it does nothing and keeps its connections open.
    pub(crate) fn freeze_worker(&self, number: usize) {
        self.tell_worker(number, Signal::SIGSTOP);
    }

    /// Continues the daemon.
    pub(crate) fn thaw_worker(&self, number: usize) {
        self.tell_worker(number, Signal::SIGCONT);
    }

    fn tell_worker(&self, number: usize, signal: Signal) {
        kill(Pid::from_raw(self.workers[number].process.id() as i32), signal).unwrap();
    }

    /// Kills the head and all worker daemons at once; ranks and executors survive.
    pub(crate) fn kill_daemons(&mut self) {
        self.kill_head();
        (0..self.workers.len()).for_each(|number| self.kill_worker(number));
    }

    /// Starts the head and all workers at the same time; workers that are first find no head.
    pub(crate) fn restart_daemons(&mut self) {
        let folder = self.folder.path();
        let (head, workers) = (&mut self.head, &mut self.workers);
        std::thread::scope(|scope| {
            for daemon in workers.iter_mut().chain([head]) {
                scope.spawn(move || *daemon = daemon.again(folder));
            }
        });
    }

    /// Restarts a worker with this binary.
    pub(crate) fn upgrade_worker(&mut self, number: usize, program: PathBuf) {
        let Daemon { arguments, environment, .. } = &self.workers[number];
        let (arguments, environment) = (arguments.clone(), environment.clone());
        self.workers[number] = Daemon::start(self.folder.path(), program, arguments, environment);
    }

    /// Restarts the head with this binary.
    pub(crate) fn upgrade_head(&mut self, program: PathBuf) {
        let Daemon { arguments, environment, .. } = &self.head;
        let (arguments, environment) = (arguments.clone(), environment.clone());
        self.head = Daemon::start(self.folder.path(), program, arguments, environment);
    }

    /// Starts the head with this binary, which refuses to. Returns its exit code and what it printed.
    pub(crate) fn refused_head(&self, program: &Path) -> (Option<i32>, String) {
        let Daemon { arguments, environment, .. } = &self.head;
        let mut command = super::clean(program, self.folder.path());
        let output = command.envs(environment.clone()).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// From now on commands are those of this program.
    pub(crate) fn upgrade_command_line(&mut self, program: PathBuf) {
        self.program = program;
    }

    /// The process id of the executor of a rank (`JOB/ATTEMPT/RANK`) of this worker.
    pub(crate) fn executor_of(&self, worker: usize, rank: &str) -> i32 {
        let name = format!("worker{worker}/ranks/{rank}/executor.json");
        self.until_file(&name);
        let identity: Value = serde_json::from_str(&self.read(&name)).unwrap();
        identity["pid"].as_i64().unwrap() as i32
    }

    /// The same for a rank of any worker.
    pub(crate) fn executor_of_any(&self, rank: &str) -> i32 {
        let holds = |number: &usize| self.folder().join(format!("worker{number}/ranks/{rank}")).exists();
        let worker = (0..self.workers.len()).find(holds).expect("a worker has the rank");
        self.executor_of(worker, rank)
    }

    /// A copy of the binary under another name, as another release would be installed.
    pub(crate) fn another_release(&self, name: &str) -> PathBuf {
        let path = self.folder().join(name);
        // By another process: a process that another test starts meanwhile would inherit a file that is open
        // for writing here, and as long as it holds it, the copy cannot be executed.
        let copied = Command::new("cp").arg(binary()).arg(&path).status().unwrap();
        assert!(copied.success(), "{copied}");
        path
    }
}

/// A wall clock that can be set, for daemons started with its environment.
pub(crate) struct FakeClock {
    library: String,
    file: PathBuf,
}

impl FakeClock {
    /// A clock that is right until it is set; its file is in this directory.
    pub(crate) fn right(folder: &Path) -> FakeClock {
        let clock = FakeClock { library: library("fake_clock"), file: folder.join("clock") };
        clock.set(0);
        clock
    }

    /// Sets the clock this many seconds ahead.
    pub(crate) fn set(&self, ahead: i64) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, ahead.to_string()).unwrap();
        // Nobody reads half a number.
        std::fs::rename(&new, &self.file).unwrap();
    }

    /// The environment variables that make a daemon use this clock.
    pub(crate) fn environment(&self) -> [(&str, &str); 2] {
        [("LD_PRELOAD", &self.library), ("COHABIT_FAKE_CLOCK", self.file.to_str().unwrap())]
    }
}

/// The disk of a journal, which can fail, for a head started with its environment.
pub(crate) struct FakeDisk {
    library: String,
    file: PathBuf,
}

impl FakeDisk {
    /// A disk that works until it is told to fail; its file is in this directory.
    pub(crate) fn sound(folder: &Path) -> FakeDisk {
        let disk = FakeDisk { library: library("fake_disk"), file: folder.join("disk") };
        disk.mend();
        disk
    }

    /// From now on, writes fail with this error.
    pub(crate) fn fail(&self, errno: Errno) {
        std::fs::write(&self.file, (errno as i32).to_string()).unwrap();
    }

    pub(crate) fn mend(&self) {
        std::fs::write(&self.file, "").unwrap();
    }

    /// The environment variables that make a head use this disk.
    pub(crate) fn environment(&self) -> [(&str, &str); 2] {
        [("LD_PRELOAD", &self.library), ("COHABIT_FAKE_DISK", self.file.to_str().unwrap())]
    }
}

/// The path of a library to preload.
fn library(name: &str) -> String {
    let library = examples().unwrap().join(format!("lib{name}.so"));
    assert!(library.exists(), "{} is missing: cargo build -p cohabit-fakes --examples", library.display());
    library.display().to_string()
}

/// A file that cannot be removed does not matter here.
pub(crate) fn kill_hard(pid: i32) {
    // It may be gone already.
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
}
