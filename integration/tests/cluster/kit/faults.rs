//! What can happen to a cluster: machines that vanish, links through a wire that breaks, other releases,
//! clocks that step.

use std::path::{Path, PathBuf};

use cohabit_fakes::examples;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Cluster, Daemon, Proxy, binary, processes_with, until};

impl Cluster {
    /// A worker that finds the head through this wire.
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

    /// Nothing of this machine's daemon, executors and ranks is left, all at once.
    pub(crate) fn machine_dies(&mut self, number: usize) {
        self.kill_worker(number);
        let mark = self.path(&format!("worker{number}"));
        until("the machine is dead", || {
            let left = processes_with(&mark);
            left.iter().for_each(|pid| kill_hard(*pid));
            left.is_empty()
        });
    }

    /// The daemon does nothing any more, and keeps what it has open.
    pub(crate) fn freeze_worker(&self, number: usize) {
        self.tell_worker(number, Signal::SIGSTOP);
    }

    /// It goes on where it was.
    pub(crate) fn thaw_worker(&self, number: usize) {
        self.tell_worker(number, Signal::SIGCONT);
    }

    fn tell_worker(&self, number: usize, signal: Signal) {
        kill(Pid::from_raw(self.workers[number].process.id() as i32), signal).unwrap();
    }

    /// Everything dies at once but the ranks and their executors.
    pub(crate) fn kill_daemons(&mut self) {
        self.kill_head();
        (0..self.workers.len()).for_each(|number| self.kill_worker(number));
    }

    /// The head and all workers are started at the same time; workers that come first find nobody.
    pub(crate) fn restart_daemons(&mut self) {
        let folder = self.folder.path();
        let (head, workers) = (&mut self.head, &mut self.workers);
        std::thread::scope(|scope| {
            for daemon in workers.iter_mut().chain([head]) {
                scope.spawn(move || *daemon = daemon.again(folder));
            }
        });
    }

    /// A worker's next life is in this program.
    pub(crate) fn upgrade_worker(&mut self, number: usize, program: PathBuf) {
        let Daemon { arguments, environment, .. } = &self.workers[number];
        let (arguments, environment) = (arguments.clone(), environment.clone());
        self.workers[number] = Daemon::start(self.folder.path(), program, arguments, environment);
    }

    /// The head's next life is in this program.
    pub(crate) fn upgrade_head(&mut self, program: PathBuf) {
        let Daemon { arguments, environment, .. } = &self.head;
        let (arguments, environment) = (arguments.clone(), environment.clone());
        self.head = Daemon::start(self.folder.path(), program, arguments, environment);
    }

    /// From now on commands are those of this program.
    pub(crate) fn upgrade_command_line(&mut self, program: PathBuf) {
        self.program = program;
    }

    /// The number of the process that holds a rank (`JOB/ATTEMPT/RANK`) of this worker.
    pub(crate) fn executor_of(&self, worker: usize, rank: &str) -> i32 {
        let name = format!("worker{worker}/ranks/{rank}/executor.json");
        self.until_file(&name);
        let identity: serde_json::Value = serde_json::from_str(&self.read(&name)).unwrap();
        identity["pid"].as_i64().unwrap() as i32
    }

    /// The same for a rank of any worker.
    pub(crate) fn executor_of_any(&self, rank: &str) -> i32 {
        let holds = |number: &usize| self.folder().join(format!("worker{number}/ranks/{rank}")).exists();
        let worker = (0..self.workers.len()).find(holds).expect("a worker has the rank");
        self.executor_of(worker, rank)
    }

    /// The same binary under another name, as another release of it would be installed.
    pub(crate) fn another_release(&self, name: &str) -> PathBuf {
        let path = self.folder().join(name);
        std::fs::copy(binary(), &path).unwrap();
        path
    }
}

/// A wall clock that can be set, for the daemons that are given its environment.
pub(crate) struct FakeClock {
    library: String,
    file: PathBuf,
}

impl FakeClock {
    /// One that is right so far, and lies in this folder.
    pub(crate) fn right(folder: &Path) -> FakeClock {
        let library = examples().unwrap().join("libfake_clock.so");
        assert!(
            library.exists(),
            "{} is missing: cargo build -p cohabit-fakes --examples",
            library.display()
        );
        let clock = FakeClock { library: library.display().to_string(), file: folder.join("clock") };
        clock.set(0);
        clock
    }

    /// From now on it is so many seconds ahead.
    pub(crate) fn set(&self, ahead: i64) {
        let new = self.file.with_extension("new");
        std::fs::write(&new, ahead.to_string()).unwrap();
        // Nobody reads half a number.
        std::fs::rename(&new, &self.file).unwrap();
    }

    /// What a daemon needs in its environment to live by it.
    pub(crate) fn environment(&self) -> [(&str, &str); 2] {
        [("LD_PRELOAD", &self.library), ("COHABIT_FAKE_CLOCK", self.file.to_str().unwrap())]
    }
}

/// It cannot do anything about it.
pub(crate) fn kill_hard(pid: i32) {
    // It may be gone already.
    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
}
