//! The lock in a pipe directory, which its daemon holds. It shows the daemon more surely than its pid file:
//! the daemon of driver 535 writes none, and one that is killed leaves it behind.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// The process id of the daemon that serves this pipe directory; `None` if none does, or if it has no process
/// id here because it runs in a container.
///
/// # Errors
/// When the lock's file cannot be opened.
pub fn daemon_of_pipe(pipe: &Path) -> io::Result<Option<i32>> {
    let lock = match OpenOptions::new().write(true).open(pipe.join("control_lock")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        lock => lock?,
    };
    let mut holder = libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(&lock, FcntlArg::F_GETLK(&mut holder))?;
    Ok((holder.l_type != libc::F_UNLCK as i16 && holder.l_pid > 0).then_some(holder.l_pid))
}
