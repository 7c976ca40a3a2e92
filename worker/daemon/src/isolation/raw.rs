//! The two steps that Rust cannot check: marking an open file by its number, and doing something between fork
//! and exec.
#![expect(unsafe_code, reason = "see the note at each step")]

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};

/// Whatever is started from now on does not inherit this file. A number that stands for no file is no
/// trouble.
pub(super) fn close_on_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: the number is used for two calls that only look at and change its flag, and is not kept. Should
    // it stand for no file by now, they fail.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    match fcntl_getfd(file).and_then(|flags| fcntl_setfd(file, flags | FdFlags::CLOEXEC)) {
        Ok(()) | Err(Errno::BADF) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The process enters the cgroup of this `cgroup.procs` before it becomes the program: nothing of the program
/// ever is elsewhere.
pub(crate) fn enter_cgroup_before_exec(command: &mut Command, cgroup_procs: File) -> &mut Command {
    let enter = move || {
        // Zero stands for the process that writes it.
        rustix::io::write(&cgroup_procs, b"0")?;
        Ok(())
    };
    // SAFETY: between fork and exec only what is safe in a signal handler may be done. This is one system
    // call; it takes no lock and allocates nothing.
    unsafe { command.pre_exec(enter) }
}
