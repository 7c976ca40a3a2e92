//! Drops what an executor has inherited, so that no rank inherits it from whoever started the worker: open
//! files, ignored signals, the umask, and the possibility of gaining privileges.
//!
//! The environment and the working directory are set for each rank.

use std::fs;
use std::io;
use std::os::fd::RawFd;

use nix::sys::prctl;
use nix::sys::stat::{Mode, umask};
use procfs::process::Process;
use tokio::signal::unix::{SignalKind, signal};

use crate::raw;

/// New files can be read by everybody and written by their owner only, as after most logins.
const DEFAULT_UMASK: Mode = Mode::from_bits_truncate(0o022);

/// Drops inherited state for this process and everything that it will start. Must be called before a second
/// thread exists.
///
/// # Errors
/// When a system call fails.
pub(crate) fn drop_inherited_state() -> io::Result<()> {
    umask(DEFAULT_UMASK);
    prctl::set_no_new_privs()?;
    open_files()?.into_iter().try_for_each(raw::close_on_exec)?;
    ignored_signals()?.into_iter().for_each(handle);
    Ok(())
}

/// All open files but the standard ones.
fn open_files() -> io::Result<Vec<RawFd>> {
    let entries = fs::read_dir("/proc/self/fd")?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(numbers.filter(|fd: &RawFd| *fd > 2).collect())
}

fn ignored_signals() -> io::Result<Vec<i32>> {
    let status = Process::myself().and_then(|process| process.status()).map_err(io::Error::other)?;
    Ok((1..=64).filter(|signal| status.sigign >> (signal - 1) & 1 == 1).collect())
}

/// An ignored signal is inherited, a handled one is reset to its default by exec. Signals that the C library
/// reserves cannot be handled and stay as they are.
fn handle(number: i32) {
    drop(signal(SignalKind::from_raw(number)));
}
