//! Launches the programs of the tests, and finds their jobs and processes.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::kit::*;

/// A program of `integration/examples`, which `cargo test` built beside the tests.
pub(super) fn program(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(program.exists(), "{} is missing: cargo build --examples", program.display());
    program
}

/// A launched application.
pub(crate) struct Launch {
    process: Child,
    output: BufReader<ChildStdout>,
    errors: BufReader<ChildStderr>,
}

impl Launch {
    /// The next line that its `main` prints.
    pub(crate) fn line(&mut self) -> String {
        let (mut line, mut said) = (String::new(), String::new());
        if self.output.read_line(&mut line).unwrap() == 0 {
            self.errors.read_to_string(&mut said).unwrap();
        }
        assert!(!line.is_empty(), "it has ended: {said}");
        line.trim_end().to_owned()
    }

    /// Waits until the launcher says this on standard error; returns the line.
    pub(super) fn told(&mut self, text: &str) -> String {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.errors.read_line(&mut line).unwrap(), 0, "it has ended without '{text}'");
        }
        line
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.process.id() as i32), signal).unwrap();
    }

    /// The rest of what it prints, what it says on standard error, and its exit code.
    pub(crate) fn end(mut self) -> CommandOutput {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.output.read_to_string(&mut stdout).unwrap();
        self.errors.read_to_string(&mut stderr).unwrap();
        let output = CommandOutput::from(self.process.wait_with_output().unwrap());
        CommandOutput { stdout, stderr, ..output }
    }
}

impl Cluster {
    pub(crate) fn launch(&self, arguments: &[&str]) -> Launch {
        self.launch_program(&program("application"), arguments)
    }

    pub(crate) fn launch_program(&self, program: &Path, arguments: &[&str]) -> Launch {
        self.launch_program_at(self.address(), program, arguments)
    }

    /// The same, with the head at this address.
    pub(crate) fn launch_program_at(&self, head: String, program: &Path, arguments: &[&str]) -> Launch {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.folder()).stdin(Stdio::null());
        command.env("PATH", std::env::var("PATH").unwrap()).env("HOME", self.folder());
        command.env("COHABIT_STATE", self.folder().join("head")).env("COHABIT_HEAD", head).args(arguments);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let errors = BufReader::new(process.stderr.take().unwrap());
        Launch { process, output, errors }
    }

    /// Launches the application and waits for the end of its `main`.
    pub(crate) fn application(&self, arguments: &[&str]) -> CommandOutput {
        self.launch(arguments).end()
    }

    /// The jobs of this state whose work begins so.
    pub(crate) fn jobs_of(&self, work: &str, state: &str) -> Vec<String> {
        let listed = self.json(&["list", "--all"]);
        let jobs = listed["jobs"].as_array().unwrap().iter();
        let fits = |job: &&serde_json::Value| {
            job["state"] == state && job["work"].as_str().is_some_and(|it| it.starts_with(work))
        };
        jobs.filter(fits).map(|job| job["id"].as_str().unwrap().to_owned()).collect()
    }

    /// The processes of the program on this machine, but not its launchers.
    pub(crate) fn program_processes(&self) -> Vec<i32> {
        processes_with(&self.path("worker0/code"))
    }
}

pub(super) fn kill_process(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}
