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

use cohabit_proto::{StartFailure, Work};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

use crate::files::{At, FileError, create, is_of_machine};
use crate::isolation::{Account, RankCgroup, enter_first};
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
    let script = command.script.as_ref().map(|text| write_script(folder, text, start)).transpose()?;
    let cgroup = start.cgroup.as_ref().map(RankCgroup::open).transpose();
    let cgroup = cgroup.map_err(of_file)?;
    let what = What { script, name, arguments, cgroup };
    let Some(account) = &start.account else { return launch_here(&what, start) };
    let launched = account.act(|| {
        if access(folder.path(), AccessFlags::X_OK).is_err() {
            return Err(unreachable(folder, account));
        }
        launch_here(&what, start)
    });
    launched.unwrap_or_else(|error| Err(StartFailure::Other(format!("it cannot run as its user: {error}"))))
}

/// What is started.
struct What<'a> {
    /// The script that the job brought, where it is now.
    script: Option<PathBuf>,
    name: &'a str,
    arguments: &'a [String],
    /// Where its processes live.
    cgroup: Option<File>,
}

fn unreachable(folder: &RankFolder, account: &Account) -> StartFailure {
    StartFailure::Account(format!(
        "user '{}' cannot pass through the folders above '{}' on the worker: let everybody (chmod o+x), or start \
         the worker with another --state",
        account.name,
        folder.path().display()
    ))
}

/// Starts it as whoever this thread is.
fn launch_here(what: &What<'_>, start: &Start) -> Result<Child, StartFailure> {
    let name = what.name;
    let workdir = Path::new(&start.rank.spec.workdir);
    if !workdir.is_dir() || access(workdir, AccessFlags::X_OK).is_err() {
        return Err(StartFailure::WorkdirMissing(start.rank.spec.workdir.clone()));
    }
    let program = program(what, workdir, &start.environment)?;
    let spawn = |process: &mut Process| {
        if let Some(procs) = &what.cgroup {
            enter_first(process, procs.try_clone()?);
        }
        process.args(what.arguments).current_dir(workdir).env_clear().envs(&start.environment);
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
    what: &What<'_>,
    workdir: &Path,
    environment: &BTreeMap<String, String>,
) -> Result<PathBuf, StartFailure> {
    let name = what.name;
    match &what.script {
        Some(script) => Ok(script.clone()),
        None if name.contains('/') => executable(workdir.join(name), name),
        None => look_up(name, workdir, environment.get("PATH").map_or("", String::as_str)),
    }
}

/// Only the rank's user can read it, or execute it.
fn write_script(folder: &RankFolder, script: &str, start: &Start) -> Result<PathBuf, StartFailure> {
    let path = folder.script();
    let written = create(&path, 0o700).and_then(|mut file| {
        file.write_all(script.as_bytes()).at("write the script to", &path)?;
        start.account.as_ref().map_or(Ok(()), |account| account.own(&path))
    });
    written.map(|()| path).map_err(of_file)
}

fn of_file(error: FileError) -> StartFailure {
    match error.is_of_machine() {
        true => StartFailure::NodeTrouble(error.to_string()),
        false => StartFailure::Other(error.to_string()),
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
