//! A clock that can be set: a library to be preloaded into a program, which then reads a wall clock that is
//! as many seconds ahead as a file says, or behind, if the number is negative.
//!
//! `COHABIT_FAKE_CLOCK` names the file. It is read anew each time, so that the clock steps while the program
//! runs. Clocks that nobody can set are not touched.
#![expect(unsafe_code, reason = "it stands in for a function of the C library")]

use std::ffi::{OsString, c_int};
use std::sync::LazyLock;

use nix::libc::{CLOCK_REALTIME, SYS_clock_gettime, clockid_t, syscall, timespec};

static STEP: LazyLock<Option<OsString>> = LazyLock::new(|| std::env::var_os("COHABIT_FAKE_CLOCK"));

/// What the C library's own does, but for the wall clock.
///
/// # Safety
/// As of the C library's: `time` points to where a time may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the caller's pointer is passed on to the system, which checks it.
    let done = unsafe { syscall(SYS_clock_gettime, clock, time) } as c_int;
    if done == 0 && clock == CLOCK_REALTIME {
        // SAFETY: the system has just written there.
        unsafe { (*time).tv_sec += step() };
    }
    done
}

fn step() -> i64 {
    let text = STEP.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
