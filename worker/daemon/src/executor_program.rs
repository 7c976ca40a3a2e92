//! Which program runs the executors.

use std::env;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file of this process, which the kernel finds also where it was replaced or removed meanwhile.
const OWN_FILE: &str = "/proc/self/exe";

/// The program that runs `executor DIR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutorProgram {
    /// The one that this process runs: its executors are of its own version until it is started again.
    Own,
    /// The one with this path.
    At(PathBuf),
}

impl ExecutorProgram {
    /// A command that starts it, listed under the name of the program.
    pub(crate) fn command(&self) -> Command {
        let path = match self {
            ExecutorProgram::Own => Path::new(OWN_FILE),
            ExecutorProgram::At(path) => path,
        };
        let mut command = Command::new(path);
        if let (ExecutorProgram::Own, Some(name)) = (self, env::args_os().next()) {
            command.arg0(name);
        }
        command
    }

    /// Where it is, for people.
    pub(crate) fn location(&self) -> PathBuf {
        match self {
            ExecutorProgram::Own => env::current_exe().unwrap_or_else(|_| OWN_FILE.into()),
            ExecutorProgram::At(path) => path.clone(),
        }
    }
}
