//! Processes as `/proc` shows them: which one it is, beyond doubt, and what its environment says of it.
//!
//! A number alone names nobody, for numbers are used again; number, start time and boot do. The environment
//! is that with which a process started its program: it cannot be changed afterwards.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::{Process, Stat};
use serde::{Deserialize, Serialize};

/// Which process it is. Can be written down, and read by another process later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pid: i32,
    /// Clock ticks since the machine was started.
    started_at_ticks: u64,
    /// Another one after each start of the machine.
    boot: String,
}

impl ProcessIdentity {
    /// Of the process that has this number now, if it lives.
    #[must_use]
    pub fn of(pid: i32) -> Option<ProcessIdentity> {
        let stat = Process::new(pid).ok()?.stat().ok().filter(is_alive)?;
        Some(ProcessIdentity { pid, started_at_ticks: stat.starttime, boot: boot()? })
    }

    /// Of this process.
    ///
    /// # Errors
    /// When `/proc` does not show it.
    pub fn own() -> io::Result<ProcessIdentity> {
        let pid = std::process::id().cast_signed();
        ProcessIdentity::of(pid)
            .ok_or_else(|| io::Error::other(format!("/proc does not show this process, {pid}")))
    }

    /// Its number.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        ProcessIdentity::of(self.pid).as_ref() == Some(self)
    }

    /// Whether the machine has not been started since: if it has, nothing is left of what ran then.
    #[must_use]
    pub fn is_of_this_boot(&self) -> bool {
        boot().as_ref() == Some(&self.boot)
    }

    /// Sends the signal, unless the process is gone.
    pub fn signal(&self, signal: Signal) {
        if self.is_alive() {
            send(Pid::from_raw(self.pid), signal);
        }
    }
}

/// Sends the signal; a process that has gone meanwhile needs none, and one of another user gets none.
pub fn send(pid: Pid, signal: Signal) {
    match kill(pid, signal) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => tracing::warn!(%pid, %signal, %error, "a signal could not be sent"),
    }
}

/// Whether a process is neither a zombie nor on its way to be reaped.
#[must_use]
pub fn is_alive(stat: &Stat) -> bool {
    !matches!(stat.state, 'Z' | 'X' | 'x')
}

/// What this variable was when the process started its program; nothing where there is no such process, it is
/// dead, or it is another user's.
#[must_use]
pub fn variable_of(pid: i32, name: &str) -> Option<OsString> {
    let beginning = [name.as_bytes(), b"="].concat();
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(&beginning[..]))?;
    Some(OsString::from_vec(value.to_vec()))
}

/// What this run of the machine is called; another one after each start.
#[must_use]
pub fn boot() -> Option<String> {
    Some(std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> (Child, ProcessIdentity) {
        let child = Command::new("sleep").arg("1000").env("COHABIT_TEST_MARK", "process.rs").spawn().unwrap();
        let identity = ProcessIdentity::of(child.id().cast_signed()).unwrap();
        (child, identity)
    }

    #[test]
    fn a_process_is_itself_until_it_ends() {
        let (mut child, identity) = sleeper();
        let reused = ProcessIdentity { started_at_ticks: identity.started_at_ticks + 1, ..identity.clone() };
        let rebooted = ProcessIdentity { boot: "another".into(), ..identity.clone() };
        assert!(ProcessIdentity::own().unwrap().is_alive() && identity.is_alive());
        assert!(!reused.is_alive() && !rebooted.is_alive());
        assert!(identity.is_of_this_boot() && !rebooted.is_of_this_boot());
        identity.signal(Signal::SIGKILL);
        while identity.is_alive() {
            std::thread::yield_now();
        }
        assert_eq!(ProcessIdentity::of(identity.pid()), None, "though nobody has reaped it");
        child.wait().unwrap();
        assert_eq!(ProcessIdentity::of(identity.pid()), None);
    }

    #[test]
    fn only_its_own_process_gets_a_signal() {
        let (mut child, identity) = sleeper();
        ProcessIdentity { started_at_ticks: identity.started_at_ticks + 1, ..identity.clone() }
            .signal(Signal::SIGKILL);
        assert!(identity.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let (mut child, identity) = sleeper();
        // Until its program is started, a new process still shows our environment.
        while variable_of(identity.pid(), "COHABIT_TEST_MARK").is_none() {
            std::thread::yield_now();
        }
        assert_eq!(variable_of(identity.pid(), "COHABIT_TEST_MARK").unwrap(), "process.rs");
        assert_eq!(variable_of(identity.pid(), "COHABIT_TEST"), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(variable_of(identity.pid(), "COHABIT_TEST_MARK"), None);
    }
}
