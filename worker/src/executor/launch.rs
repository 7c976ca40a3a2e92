//! Starts the process of a rank, and says in the words of the protocol why it could not be started.
//!
//! The program is looked up here, as a shell would, and not left to the system: only so can "there is none"
//! be told from "it may not be executed". A script without `#!` line is run by `/bin/sh`, as shells do it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};

use cohabit_proto::{Command, StartFailure, Work};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

use crate::files::{At, create, is_of_machine};
use crate::rank_folder::{RankFolder, Start};

/// Starts the rank's first process: leader of a group of its own, nothing on its standard input, its output
/// in pipes.
pub(crate) fn launch(folder: &RankFolder, start: &Start) -> Result<Child, StartFailure> {
    let Work::Command(command) = &start.rank.spec.work else {
        return Err(StartFailure::Other("this worker runs commands only".into()));
    };
    let Some((name, arguments)) = command.argv.split_first() else {
        return Err(StartFailure::Other("there is no command to run".into()));
    };
    let workdir = Path::new(&start.rank.spec.workdir);
    if !workdir.is_dir() || access(workdir, AccessFlags::X_OK).is_err() {
        return Err(StartFailure::WorkdirMissing(start.rank.spec.workdir.clone()));
    }
    let program = program(folder, command, name, workdir, &start.environment)?;
    let spawn = |process: &mut Process| {
        process.args(arguments).current_dir(workdir).env_clear().envs(&start.environment);
        process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()
    };
    let started = match spawn(Process::new(&program).arg0(name)) {
        Err(error) if is(&error, Errno::ENOEXEC) && is_text(&program) => {
            spawn(Process::new("/bin/sh").arg(&program))
        }
        started => started,
    };
    started.map_err(|error| failure(&error, name))
}

/// The file to execute: the script that the job brought, or what its command names.
fn program(
    folder: &RankFolder,
    command: &Command,
    name: &str,
    workdir: &Path,
    environment: &BTreeMap<String, String>,
) -> Result<PathBuf, StartFailure> {
    match &command.script {
        Some(script) => write_script(folder.script(), script),
        None if name.contains('/') => executable(workdir.join(name), name),
        None => look_up(name, workdir, environment.get("PATH").map_or("", String::as_str)),
    }
}

fn write_script(path: PathBuf, script: &str) -> Result<PathBuf, StartFailure> {
    let written = create(&path, 0o700)
        .and_then(|mut file| file.write_all(script.as_bytes()).at("write the script to", &path));
    match written {
        Ok(()) => Ok(path),
        Err(error) if error.is_of_machine() => Err(StartFailure::NodeTrouble(error.to_string())),
        Err(error) => Err(StartFailure::Other(error.to_string())),
    }
}

/// The first in the search path that may be executed; otherwise why the first that is there may not.
fn look_up(name: &str, workdir: &Path, search_path: &str) -> Result<PathBuf, StartFailure> {
    let folders = search_path.split(':').filter(|folder| !folder.is_empty());
    let mut failure = StartFailure::CommandNotFound(name.to_owned());
    for folder in folders {
        match executable(workdir.join(folder).join(name), name) {
            Ok(program) => return Ok(program),
            Err(refused @ StartFailure::NotExecutable(_)) => failure = refused,
            Err(_) => {}
        }
    }
    Err(failure)
}

fn executable(path: PathBuf, name: &str) -> Result<PathBuf, StartFailure> {
    match fs::metadata(&path) {
        Ok(file) if file.is_file() && access(&path, AccessFlags::X_OK).is_ok() => Ok(path),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Err(StartFailure::CommandNotFound(name.to_owned()))
        }
        Ok(_) | Err(_) => Err(StartFailure::NotExecutable(name.to_owned())),
    }
}

/// The program is there and may be executed: if the system finds something missing, it is the program's
/// interpreter.
fn failure(error: &io::Error, name: &str) -> StartFailure {
    let refused =
        [Errno::ENOENT, Errno::EACCES, Errno::EPERM, Errno::ENOEXEC, Errno::ELIBBAD, Errno::ENOTDIR];
    if refused.iter().any(|errno| is(error, *errno)) {
        return StartFailure::NotExecutable(name.to_owned());
    }
    let said = format!("'{name}' could not be started: {error}");
    if is_of_machine(error) { StartFailure::NodeTrouble(said) } else { StartFailure::Other(said) }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno as i32)
}

/// Whether the file begins like something that a shell can read.
fn is_text(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(512).read_to_end(&mut beginning));
    read.is_ok() && !beginning.contains(&0)
}
