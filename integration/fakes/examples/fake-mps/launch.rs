//! Starts the control daemon: its checks, and how it detaches from its parent.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its user")]

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use cohabit_fakes::{FakeWorld, StartScript, WORLD_VARIABLE};
use nix::fcntl::{FcntlArg, fcntl};
use nix::unistd::{AccessFlags, Uid, access, dup2_stdout, setsid};

use crate::log::Echo;
use crate::release::Release;
use crate::servers::Users;
use crate::{daemon, log};

/// The stages from parent to daemon.
const STAGE: &str = "FAKE_MPS_STAGE";

/// What the daemon sends to the waiting process; nothing if it could not start.
const READY: &str = "ready";
const BUSY: &str = "busy";

/// `-d`: starts a detached daemon in a session of its own, and waits until it is ready.
pub(crate) fn in_background(world: &FakeWorld, flags: &[&str]) -> ExitCode {
    match std::env::var(STAGE).ok().as_deref() {
        Some("session") => in_new_session(flags),
        Some(_) => serve_detached(world, users(flags)),
        None => match refusal(world, flags) {
            Some(code) => code,
            None => send_away(world, flags),
        },
    }
}

/// `-f`: runs as the daemon itself and prints its log.
pub(crate) fn in_foreground(world: &FakeWorld, flags: &[&str]) -> ExitCode {
    if let Some(code) = refusal(world, flags) {
        return code;
    }
    match prepare() {
        Prepared::Ready(lock) => daemon::serve(world, Echo::Output, users(flags), lock, || {}),
        Prepared::Busy => busy(),
        Prepared::Impossible => ExitCode::FAILURE,
    }
}

/// Whose processes a server serves, by these flags.
fn users(flags: &[&str]) -> Users {
    match flags.iter().any(|flag| ["-M", "-multiuser-server"].contains(flag)) {
        true => Users::All,
        false => Users::OneAtATime,
    }
}

/// Why the daemon refuses to start, in the order of the real one.
fn refusal(world: &FakeWorld, flags: &[&str]) -> Option<ExitCode> {
    if users(flags) == Users::All && !Uid::effective().is_root() {
        eprintln!("Only root user may enable -multiuser-server!");
        return Some(ExitCode::FAILURE);
    }
    let devices = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    match world.visible(devices.as_deref()).first().map(|gpu| gpu.mps.control) {
        // CUDA_ERROR_NO_DEVICE, of which the servers of older releases fail.
        None if Release::of(world) == Release::R580 => return Some(ExitCode::from(100)),
        None => {}
        Some(StartScript::Exits(status)) => return Some(ExitCode::from(u8::try_from(status).unwrap_or(1))),
        Some(StartScript::Works) => {}
    }
    let pipe = crate::pipe_directory();
    if !writable(&pipe) {
        eprintln!("Cannot access CUDA_MPS_PIPE_DIRECTORY={}", pipe.display());
        return Some(ExitCode::FAILURE);
    }
    if !writable(&log::folder()) {
        eprintln!("Warning: Failed writing log files to directory [{}].", log::folder().display());
    }
    None
}

fn writable(folder: &Path) -> bool {
    folder.is_dir() && access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok()
}

pub(crate) fn no_world() -> ExitCode {
    eprintln!("This is a fake of NVIDIA's MPS: name its world by {WORLD_VARIABLE}.");
    ExitCode::from(2)
}

fn busy() -> ExitCode {
    println!("An instance of this daemon is already running");
    ExitCode::FAILURE
}

/// Starts the program again, in this stage. Only its output is shared, to report success.
fn again(stage: &str, flags: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("nvidia-cuda-mps-control").args(flags).env(STAGE, stage);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn send_away(world: &FakeWorld, flags: &[&str]) -> ExitCode {
    let mut session = again("session", flags);
    session.env(WORLD_VARIABLE, world.root());
    match session.output().map(|output| output.stdout) {
        Ok(word) if word == READY.as_bytes() => ExitCode::SUCCESS,
        Ok(word) if word == BUSY.as_bytes() => busy(),
        _ => ExitCode::FAILURE,
    }
}

fn in_new_session(flags: &[&str]) -> ExitCode {
    let left = setsid().is_ok() && again("daemon", flags).spawn().is_ok();
    if left { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn serve_detached(world: &FakeWorld, users: Users) -> ExitCode {
    match prepare() {
        Prepared::Ready(lock) => daemon::serve(world, Echo::Silent, users, lock, || last_word(READY)),
        Prepared::Busy => {
            last_word(BUSY);
            ExitCode::FAILURE
        }
        Prepared::Impossible => ExitCode::FAILURE,
    }
}

/// Reports success and closes the output, for which the parent waits.
fn last_word(word: &str) {
    use std::io::Write;
    print!("{word}");
    let _ = std::io::stdout().flush();
    let _ = File::options().write(true).open("/dev/null").map(dup2_stdout);
}

enum Prepared {
    /// Holds the lock as long as the file is open.
    Ready(File),
    Busy,
    Impossible,
}

/// Takes the lock that only one daemon of a pipe directory can hold, until the process ends.
fn prepare() -> Prepared {
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(crate::pipe_directory().join("control_lock"));
    let Ok(file) = lock else { return Prepared::Impossible };
    let whole = nix::libc::flock {
        l_type: nix::libc::F_WRLCK as i16,
        l_whence: nix::libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    match fcntl(&file, FcntlArg::F_SETLK(&whole)) {
        Ok(_) => Prepared::Ready(file),
        Err(_) => Prepared::Busy,
    }
}
