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

use cohabit_types::{Entrypoint, StartFailure};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

use crate::files::{FileContext, FileError, create, is_of_machine};
use crate::isolation::{Account, RankCgroup, enter_cgroup_before_exec};
use crate::rank_folder::{RankDirectory, StartRecord};

/// Where a rank runs whose user may not enter its working directory, and has no account that might.
const ELSEWHERE: &str = "/tmp";

/// A rank's first process.
pub(crate) struct LaunchedRank {
    pub(crate) child: Child,
    /// What its user ought to know about where it runs.
    pub(crate) note: Option<String>,
}

/// Starts the rank's first process: leader of a group of its own, nothing on its standard input, its output
/// in pipes.
pub(crate) fn launch(folder: &RankDirectory, start: &StartRecord) -> Result<LaunchedRank, StartFailure> {
    let Entrypoint::Command(command) = &start.rank.spec.work else {
        return Err(StartFailure::Other("this worker runs commands only".into()));
    };
    let Some((name, arguments)) = command.argv.split_first() else {
        return Err(StartFailure::Other("there is no command to run".into()));
    };
    let script = command.script.as_ref().map(|text| write_script(folder, text, start)).transpose()?;
    let cgroup = start.cgroup.as_ref().map(RankCgroup::open).transpose();
    let cgroup = cgroup.map_err(of_file)?;
    let launch_command = LaunchCommand { script, name, arguments, cgroup };
    let workdir = Path::new(&start.rank.spec.workdir);
    let Some(account) = &start.account else { return launch_in(workdir, &launch_command, start) };
    let has_account = start.rank.private_uid.is_none();
    let is_there = workdir.is_dir();
    let launched = account.run_as(|| {
        let reaches_its_folders = access(folder.path(), AccessFlags::X_OK).is_ok();
        if !reaches_its_folders && (has_account || launch_command.script.is_some()) {
            return Err(unreachable(folder, account));
        }
        let moves = is_there && !has_account && access(workdir, AccessFlags::X_OK).is_err();
        let launched = launch_in(if moves { Path::new(ELSEWHERE) } else { workdir }, &launch_command, start)?;
        Ok(LaunchedRank { note: note(account, moves.then_some(workdir), reaches_its_folders), ..launched })
    });
    launched.unwrap_or_else(|error| Err(StartFailure::Other(format!("it cannot run as its user: {error}"))))
}

/// What is started.
struct LaunchCommand<'a> {
    /// The script that the job brought, where it is now.
    script: Option<PathBuf>,
    name: &'a str,
    arguments: &'a [String],
    /// Where its processes live.
    cgroup: Option<File>,
}

fn unreachable(folder: &RankDirectory, account: &Account) -> StartFailure {
    StartFailure::Account(format!(
        "user '{}' cannot pass through the folders above '{}' on the worker: let everybody (chmod o+x), or start \
         the worker with another --state",
        account.name,
        folder.path().display()
    ))
}

/// What somebody without an account on this node has to do without. A job that needs none of it runs.
fn note(account: &Account, not_entered: Option<&Path>, reaches_its_folders: bool) -> Option<String> {
    let mut lacks = Vec::new();
    if let Some(workdir) = not_entered {
        lacks.push(format!("may not enter '{}' and runs in {ELSEWHERE}", workdir.display()));
    }
    if !reaches_its_folders {
        lacks.push("reaches neither its progress file nor its checkpoints".to_owned());
    }
    let lacks = (!lacks.is_empty()).then(|| lacks.join("; it "))?;
    Some(format!("[cohabit: '{}' has no account on this node: the job {lacks}]\n", account.name))
}

/// Starts it as whoever this thread is.
fn launch_in(
    workdir: &Path,
    launch_command: &LaunchCommand<'_>,
    start: &StartRecord,
) -> Result<LaunchedRank, StartFailure> {
    let name = launch_command.name;
    if !workdir.is_dir() || access(workdir, AccessFlags::X_OK).is_err() {
        return Err(StartFailure::WorkdirMissing(workdir.display().to_string()));
    }
    let program = program(launch_command, workdir, &start.environment)?;
    let spawn = |process: &mut Process| {
        if let Some(procs) = &launch_command.cgroup {
            enter_cgroup_before_exec(process, procs.try_clone()?);
        }
        process.args(launch_command.arguments).current_dir(workdir).env_clear().envs(&start.environment);
        process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()
    };
    let started = match spawn(Process::new(&program).arg0(name)) {
        Err(error) if is(&error, Errno::ENOEXEC) && is_text(&program) => {
            spawn(Process::new("/bin/sh").arg(&program))
        }
        started => started,
    };
    let child = started.map_err(|error| failure(&error, name))?;
    Ok(LaunchedRank { child, note: None })
}

/// The file to execute: the script that the job brought, or what its command names.
fn program(
    launch_command: &LaunchCommand<'_>,
    workdir: &Path,
    environment: &BTreeMap<String, String>,
) -> Result<PathBuf, StartFailure> {
    let name = launch_command.name;
    match &launch_command.script {
        Some(script) => Ok(script.clone()),
        None if name.contains('/') => executable(workdir.join(name), name),
        None => look_up(name, workdir, environment.get("PATH").map_or("", String::as_str)),
    }
}

/// Only the rank's user can read it, or execute it.
fn write_script(folder: &RankDirectory, script: &str, start: &StartRecord) -> Result<PathBuf, StartFailure> {
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
