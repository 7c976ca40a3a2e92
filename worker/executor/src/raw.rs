//! The unsafe steps of the executor: marking an open file by its number, splitting the process, and system
//! calls between fork and exec.
#![expect(unsafe_code, reason = "see the note at each step")]

use std::fs::{self, File};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::unistd::{ForkResult, fork};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{getegid, geteuid, ioctl_tiocsctty, setsid};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

/// Marks this file close-on-exec. A number without an open file is no error.
pub(crate) fn close_on_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: the number is used for two calls that read and change its flags, and is not kept. If it is not
    // open any more, they fail.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    match fcntl_getfd(file).and_then(|flags| fcntl_setfd(file, flags | FdFlags::CLOEXEC)) {
        Ok(()) | Err(Errno::BADF) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Splits this process, which must have one thread.
///
/// # Errors
/// When it has several, or no process can be started.
pub(crate) fn split() -> io::Result<ForkResult> {
    let threads = fs::read_dir("/proc/self/task")?.count();
    if threads != 1 {
        return Err(io::Error::other(format!("a process with {threads} threads cannot be split")));
    }
    // SAFETY: no other thread can hold a lock or change memory meanwhile, so the child may do anything.
    Ok(unsafe { fork() }?)
}

/// Makes the new process enter the cgroup of this `cgroup.procs` before it executes the program, so that the
/// program never runs outside.
pub(crate) fn enter_cgroup_before_exec(command: &mut Command, cgroup_procs: File) -> &mut Command {
    let enter = move || {
        // 0 is the process that writes.
        rustix::io::write(&cgroup_procs, b"0")?;
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. This is one system call; it
    // takes no lock and allocates nothing.
    unsafe { command.pre_exec(enter) }
}

/// Makes the new process drop all user and group ids but the effective ones before it executes the program,
/// so that the program cannot take back those of the executor.
pub(crate) fn keep_effective_ids_before_exec(command: &mut Command) -> &mut Command {
    let drop_others = || {
        let (uid, gid) = (geteuid(), getegid());
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. These are four system calls
    // without the C library; they take no lock and allocate nothing.
    unsafe { command.pre_exec(drop_others) }
}

/// Makes the new process lead a session of its own, with this terminal, before it executes the program.
pub(crate) fn take_terminal_before_exec(command: &mut Command, terminal: OwnedFd) -> &mut Command {
    let take = move || {
        setsid()?;
        ioctl_tiocsctty(&terminal)?;
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. These are two system calls
    // without the C library; they take no lock and allocate nothing.
    unsafe { command.pre_exec(take) }
}
