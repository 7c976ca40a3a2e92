//! Starts the first process of a rank, or finds out why it cannot be started.
//!
//! The program is looked up here, as a shell would do it, because `exec` alone does not distinguish a missing
//! program from one that may not be executed. A script without a `#!` line is run by `/bin/sh`, as shells do.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::thread::sleep;
use std::time::Duration;

use cohabit_host::account::Account;
use cohabit_host::cgroup::RankCgroup;
use cohabit_host::files::{FileContext, FileError, create, is_of_machine};
use cohabit_host::rank_directory::RankDirectory;
use cohabit_host::records::StartRecord;
use cohabit_types::{Entrypoint, StartFailure, TerminalSize};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat, getegid, geteuid, getgid, getuid};

use crate::output_files::{self, OpenOutput};
use crate::raw::{enter_cgroup_before_exec, keep_effective_ids_before_exec, take_terminal_before_exec};
use crate::terminal::Terminal;

/// Where a rank runs whose user has no account on this host and may not enter its working directory.
const FALLBACK_WORKDIR: &str = "/tmp";

/// How often the start of a program is tried that somebody has open for writing, and the pauses in between.
const BUSY_ATTEMPTS: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// A rank's first process.
pub(crate) struct LaunchedRank {
    pub(crate) child: Child,
    /// A message for its user about where it runs.
    pub(crate) note: Option<String>,
    /// The files of the job that its output goes to as well.
    pub(crate) files: OpenOutput,
    /// Its terminal, if it has one.
    pub(crate) terminal: Option<Terminal>,
}

/// Starts the rank's first process: the leader of a new process group, with these streams. With a
/// terminal it leads a session, too.
///
/// # Errors
/// Why it could not be started, for the rank's user.
pub(crate) fn launch(
    folder: &RankDirectory,
    start: &StartRecord,
    streams: LaunchStreams,
) -> Result<LaunchedRank, StartFailure> {
    let (name, arguments) = command(start)?;
    let script = script(start).map(|text| write_script(folder, text, start)).transpose()?;
    let cgroup = start.cgroup.as_ref().map(RankCgroup::open).transpose();
    let cgroup = cgroup.map_err(of_file)?;
    let launch_command = LaunchCommand { script, name: &name, arguments, cgroup, streams };
    let workdir = start.workdir();
    let Some(account) = &start.account else { return launch_in(workdir, &launch_command, start) };
    let has_account = start.rank.private_uid.is_none();
    let is_there = workdir.is_dir();
    let launched = account.run_as(|| {
        let reaches_its_folders = may_execute(folder.path());
        if !reaches_its_folders && (has_account || launch_command.script.is_some()) {
            return Err(unreachable(folder, account));
        }
        let moves = is_there && !has_account && !may_execute(workdir);
        let launched =
            launch_in(if moves { Path::new(FALLBACK_WORKDIR) } else { workdir }, &launch_command, start)?;
        Ok(LaunchedRank { note: note(account, moves.then_some(workdir), reaches_its_folders), ..launched })
    });
    launched.unwrap_or_else(|error| Err(StartFailure::Other(format!("it cannot run as its user: {error}"))))
}

/// The name of the program to start, as the user or the daemon gives it, and its arguments.
fn command(start: &StartRecord) -> Result<(Cow<'_, str>, &[String]), StartFailure> {
    let program = || {
        let path = start.program.as_ref().map(|path| path.to_string_lossy());
        path.ok_or_else(|| StartFailure::Other("the program of its application is not known".into()))
    };
    match &start.rank.spec.entrypoint {
        Entrypoint::Command(command) => match command.argv.split_first() {
            Some((name, arguments)) => Ok((name.into(), arguments)),
            None => Err(StartFailure::Other("there is no command to run".into())),
        },
        Entrypoint::Application(work) => Ok((program()?, &work.arguments)),
        Entrypoint::Runner(work) => Ok((program()?, &work.arguments)),
    }
}

/// The text of the job's own script.
fn script(start: &StartRecord) -> Option<&str> {
    match &start.rank.spec.entrypoint {
        Entrypoint::Command(command) => command.script.as_deref(),
        Entrypoint::Application(_) | Entrypoint::Runner(_) => None,
    }
}

/// The size of the terminal that the rank has, if it has one.
pub(crate) fn terminal_size(start: &StartRecord) -> Option<TerminalSize> {
    start.rank.spec.input.terminal().filter(|_| start.rank.rank.rank == 0)
}

/// The command to start.
struct LaunchCommand<'a> {
    /// The path of the job's own script, if it has one.
    script: Option<PathBuf>,
    name: &'a str,
    arguments: &'a [String],
    /// `cgroup.procs` of the rank's cgroup.
    cgroup: Option<File>,
    streams: LaunchStreams,
}

/// What a process reads from and prints to.
pub(crate) enum LaunchStreams {
    /// It reads from this, or nothing, and prints to pipes.
    Pipes(Option<OwnedFd>),
    /// A terminal of this size.
    Terminal(TerminalSize),
}

fn unreachable(folder: &RankDirectory, account: &Account) -> StartFailure {
    StartFailure::Account(format!(
        "user '{}' cannot pass through the directories above '{}' on the worker: run chmod o+x on them, or start the \
         worker with another --state",
        account.name,
        folder.path().display()
    ))
}

/// What a user without an account on this host has to do without. A job that does not need it runs well.
fn note(account: &Account, not_entered: Option<&Path>, reaches_its_folders: bool) -> Option<String> {
    let mut limits = Vec::new();
    if let Some(workdir) = not_entered {
        limits.push(format!("may not enter '{}' and runs in {FALLBACK_WORKDIR}", workdir.display()));
    }
    if !reaches_its_folders {
        limits.push("reaches neither its progress file nor its checkpoints".to_owned());
    }
    let limits = (!limits.is_empty()).then(|| limits.join("; it "))?;
    Some(format!("[cohabit: '{}' has no account on this node: the job {limits}]\n", account.name))
}

/// Starts the command with the identity of this thread.
fn launch_in(
    workdir: &Path,
    launch_command: &LaunchCommand<'_>,
    start: &StartRecord,
) -> Result<LaunchedRank, StartFailure> {
    let name = launch_command.name;
    if !workdir.is_dir() || !may_execute(workdir) {
        return Err(StartFailure::WorkdirMissing(workdir.display().to_string()));
    }
    create_checkpoints(start)?;
    let files = output_files::open(start)?;
    let program = program(launch_command, workdir, &start.environment)?;
    let spawn = |process: &mut Process| {
        if let Some(procs) = &launch_command.cgroup {
            enter_cgroup_before_exec(process, procs.try_clone()?);
        }
        if has_other_ids() {
            keep_effective_ids_before_exec(process);
        }
        process.args(launch_command.arguments).current_dir(workdir).env_clear().envs(&start.environment);
        let terminal = set_streams(process, launch_command)?;
        Ok((process.spawn()?, terminal))
    };
    let started = match spawn_written(|| spawn(Process::new(&program).arg0(name))) {
        Err(error) if is(&error, Errno::ENOEXEC) && is_text(&program) => {
            spawn(Process::new("/bin/sh").arg(&program))
        }
        started => started,
    };
    let (child, terminal) = started.map_err(|error| failure(&error, name))?;
    Ok(LaunchedRank { child, note: None, files, terminal })
}

/// Gives the new process what it reads from and prints to, and a process group of its own. A terminal is for
/// one try: the kernel hangs it up when a process that leads a session ends, even one that cannot execute its
/// program.
fn set_streams(process: &mut Process, command: &LaunchCommand<'_>) -> io::Result<Option<Terminal>> {
    let size = match &command.streams {
        LaunchStreams::Terminal(size) => *size,
        LaunchStreams::Pipes(input) => {
            let input = input.as_ref().map(OwnedFd::try_clone).transpose()?;
            process.stdin(input.map_or_else(Stdio::null, Stdio::from));
            process.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
            return Ok(None);
        }
    };
    let (terminal, slave) = Terminal::open(size)?;
    process.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave.try_clone()?);
    take_terminal_before_exec(process, slave);
    Ok(Some(terminal))
}

/// Starts a program that the daemon may just have written: as long as a process that another of its threads
/// has forked is not yet another program, that process has the file open for writing, too.
fn spawn_written<T>(spawn: impl Fn() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..BUSY_ATTEMPTS {
        match spawn() {
            Err(error) if is(&error, Errno::ETXTBSY) => sleep(BUSY_PAUSE),
            started => return started,
        }
    }
    spawn()
}

/// Creates the directory for checkpoints that the job names, which cannot lie where its user may not write.
/// Whatever is wrong with it is the job's problem.
///
/// Where everybody may create directories, as in one that the head names for all jobs, another user may have
/// been there before: whoever owns the directory could read the checkpoints, and put others in their place.
fn create_checkpoints(start: &StartRecord) -> Result<(), StartFailure> {
    let Some(folder) = start.rank.named_checkpoints() else { return Ok(()) };
    let refuse = |why: String| StartFailure::Other(why);
    let is_open = folder.parent().and_then(|parent| fs::metadata(parent).ok()).is_some_and(is_open_to_all);
    let mode = if is_open { 0o700 } else { 0o755 };
    let created = DirBuilder::new().recursive(true).mode(mode).create(&folder);
    created.at("create the directory for checkpoints", &folder).map_err(|error| refuse(error.to_string()))?;
    if !is_open {
        return Ok(());
    }
    let found = fs::symlink_metadata(&folder).at("inspect the directory for checkpoints", &folder);
    let found = found.map_err(|error| refuse(error.to_string()))?;
    match found.is_dir() && found.uid() == geteuid().as_raw() {
        true => Ok(()),
        false => Err(refuse(format!(
            "the directory for checkpoints '{}' belongs to user id {}, in a directory that is open to all: remove it, \
             or name another one with --checkpoint",
            folder.display(),
            found.uid()
        ))),
    }
}

/// Whether everybody may create files in this directory, and remove their own alone.
fn is_open_to_all(folder: Metadata) -> bool {
    const STICKY: u32 = 0o1000;
    const WRITABLE_BY_ALL: u32 = 0o002;
    folder.mode() & (STICKY | WRITABLE_BY_ALL) == STICKY | WRITABLE_BY_ALL
}

/// The file to execute: the job's own script, or the program that its command names.
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

/// Writes the script, which only the rank's user can read and execute.
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
        true => StartFailure::NodeProblem(error.to_string()),
        false => StartFailure::Other(error.to_string()),
    }
}

/// The first executable file of this name in the search path, or why there is none.
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

/// Whether this thread acts for the rank's user, see [`Account::run_as`].
fn has_other_ids() -> bool {
    getuid() != geteuid() || getgid() != getegid()
}

/// Whether this thread may execute a file, or pass through a directory, by its effective ids: its real ones
/// are the executor's.
fn may_execute(path: &Path) -> bool {
    faccessat(AT_FDCWD, path, AccessFlags::X_OK, AtFlags::AT_EACCESS).is_ok()
}

fn executable(path: PathBuf, name: &str) -> Result<PathBuf, StartFailure> {
    match fs::metadata(&path) {
        Ok(file) if file.is_file() && may_execute(&path) => Ok(path),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Err(StartFailure::CommandNotFound(name.to_owned()))
        }
        Ok(_) | Err(_) => Err(StartFailure::NotExecutable(name.to_owned())),
    }
}

/// Translates the error of `exec`. The program exists and is executable, so "not found" means that its
/// interpreter is missing.
fn failure(error: &io::Error, name: &str) -> StartFailure {
    let refused =
        [Errno::ENOENT, Errno::EACCES, Errno::EPERM, Errno::ENOEXEC, Errno::ELIBBAD, Errno::ENOTDIR];
    if refused.iter().any(|errno| is(error, *errno)) {
        return StartFailure::NotExecutable(name.to_owned());
    }
    let message = format!("'{name}' could not be started: {error}");
    match is_of_machine(error) && !runs_a_shell() {
        true => StartFailure::NodeProblem(message),
        false => StartFailure::Other(message),
    }
}

/// Whether this machine can start processes. A file system of the user may answer with any error.
fn runs_a_shell() -> bool {
    let mut shell = Process::new("/bin/sh");
    shell.args(["-c", ":"]).env_clear().stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno as i32)
}

/// Whether the file begins like a text, which a shell can run.
fn is_text(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(512).read_to_end(&mut beginning));
    read.is_ok() && !beginning.contains(&0)
}
