//! What an executor sheds, so that no rank inherits from whoever started the worker: open files, ignored
//! signals, a mask for new files, and ways to rights that it was not given.
//!
//! The environment and the working directory are set for each rank.

use std::fs;
use std::io;
use std::os::fd::RawFd;

use nix::sys::prctl;
use nix::sys::stat::{Mode, umask};
use procfs::process::Process;
use tokio::signal::unix::{SignalKind, signal};

use super::raw;

/// New files may be read by everybody and written by their owner alone, as after most logins.
const DEFAULT_UMASK: Mode = Mode::from_bits_truncate(0o022);

/// Sheds all of it, for this process and all that it will start. To be called before there is a second
/// thread.
///
/// # Errors
/// When the system refuses.
pub(crate) fn drop_inherited_state() -> io::Result<()> {
    umask(DEFAULT_UMASK);
    prctl::set_no_new_privs()?;
    open_files()?.into_iter().try_for_each(raw::close_on_exec)?;
    ignored_signals()?.into_iter().for_each(handle);
    Ok(())
}

/// All but the standard ones.
fn open_files() -> io::Result<Vec<RawFd>> {
    let entries = fs::read_dir("/proc/self/fd")?;
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(numbers.filter(|fd: &RawFd| *fd > 2).collect())
}

fn ignored_signals() -> io::Result<Vec<i32>> {
    let status = Process::myself().and_then(|process| process.status()).map_err(io::Error::other)?;
    Ok((1..=64).filter(|signal| status.sigign >> (signal - 1) & 1 == 1).collect())
}

/// An ignored signal is inherited, a handled one is not: whoever is started begins with its usual effect.
/// Some numbers belong to the C library, and are left to it.
fn handle(number: i32) {
    drop(signal(SignalKind::from_raw(number)));
}
