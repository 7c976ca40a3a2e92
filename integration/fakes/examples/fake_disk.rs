//! A disk that fails: a library to be preloaded into a program, whose writes to the journal of a head, and
//! whose commands to make them durable, then fail with an error of the operating system.
//!
//! `COHABIT_FAKE_DISK` names a file with the number of the error; while the file is empty, nothing fails. It
//! is read anew each time.
#![expect(unsafe_code, reason = "it stands in for functions of the C library")]

use std::ffi::{OsString, c_int, c_void};
use std::sync::LazyLock;

use nix::libc::{SYS_fdatasync, SYS_fsync, SYS_pwrite64, SYS_write, off64_t, size_t, ssize_t, syscall};

static FAULT: LazyLock<Option<OsString>> = LazyLock::new(|| std::env::var_os("COHABIT_FAKE_DISK"));

/// What the C library's own does, unless the disk fails.
///
/// # Safety
/// As of the C library's: `from` points to so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(file: c_int, from: *const c_void, size: size_t) -> ssize_t {
    // SAFETY: the caller's pointer is passed on to the system, which checks it.
    if fails(file) { -1 } else { unsafe { syscall(SYS_write, file, from, size) as ssize_t } }
}

/// What the C library's own does, unless the disk fails.
///
/// # Safety
/// As of the C library's: `from` points to so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pwrite64(file: c_int, from: *const c_void, size: size_t, at: off64_t) -> ssize_t {
    // SAFETY: the caller's pointer is passed on to the system, which checks it.
    if fails(file) { -1 } else { unsafe { syscall(SYS_pwrite64, file, from, size, at) as ssize_t } }
}

/// What the C library's own does, unless the disk fails.
#[unsafe(no_mangle)]
pub extern "C" fn fsync(file: c_int) -> c_int {
    // SAFETY: it takes a number only.
    if fails(file) { -1 } else { unsafe { syscall(SYS_fsync, file) as c_int } }
}

/// What the C library's own does, unless the disk fails.
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(file: c_int) -> c_int {
    // SAFETY: it takes a number only.
    if fails(file) { -1 } else { unsafe { syscall(SYS_fdatasync, file) as c_int } }
}

/// Whether the call is to fail; then the error is set.
fn fails(file: c_int) -> bool {
    let Some(errno) = fault() else { return false };
    let of_journal = std::fs::read_link(format!("/proc/self/fd/{file}"))
        .is_ok_and(|path| path.to_string_lossy().contains("journal.sqlite"));
    if of_journal {
        nix::errno::Errno::set_raw(errno);
    }
    of_journal
}

fn fault() -> Option<c_int> {
    std::fs::read_to_string(FAULT.as_ref()?).ok()?.trim().parse().ok()
}
