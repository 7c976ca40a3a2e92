//! Processes as `/proc` shows them: their identity and their environment.
//!
//! A process id alone is no identity, because the kernel uses it again; the process id, its start time and
//! the boot id together are. The environment is the one with which the process started its program; the
//! process cannot change it afterwards.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::{Process, Stat};

/// The identity of a process. It can be stored, and read by another process later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    pid: i32,
    /// Clock ticks since boot.
    started_at_ticks: u64,
    /// The boot id, which changes with each boot.
    boot: String,
}

impl ProcessIdentity {
    /// An identity that was stored by its parts.
    #[must_use]
    pub const fn new(pid: i32, started_at_ticks: u64, boot: String) -> ProcessIdentity {
        ProcessIdentity { pid, started_at_ticks, boot }
    }

    /// The identity of the process that has this process id now, if it lives.
    #[must_use]
    pub fn of(pid: i32) -> Option<ProcessIdentity> {
        let stat = Process::new(pid).ok()?.stat().ok().filter(is_alive)?;
        Some(ProcessIdentity { pid, started_at_ticks: stat.starttime, boot: boot()? })
    }

    /// The identity of this process.
    ///
    /// # Errors
    /// When `/proc` does not show this process.
    pub fn own() -> io::Result<ProcessIdentity> {
        let pid = std::process::id().cast_signed();
        ProcessIdentity::of(pid)
            .ok_or_else(|| io::Error::other(format!("/proc does not show this process, {pid}")))
    }

    /// Its process id.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// When it was started, in clock ticks since boot.
    #[must_use]
    pub const fn started_at_ticks(&self) -> u64 {
        self.started_at_ticks
    }

    /// The id of the boot in which it runs or ran.
    #[must_use]
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        ProcessIdentity::of(self.pid).as_ref() == Some(self)
    }

    /// Whether the host has not been rebooted since. After a reboot nothing is left of the process.
    #[must_use]
    pub fn is_of_this_boot(&self) -> bool {
        boot().as_ref() == Some(&self.boot)
    }

    /// Sends the signal unless the process has ended.
    pub fn signal(&self, signal: Signal) {
        if self.is_alive() {
            send(Pid::from_raw(self.pid), signal);
        }
    }
}

/// Sends the signal. A process that has ended is ignored; a refusal is logged.
pub fn send(pid: Pid, signal: Signal) {
    match kill(pid, signal) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => tracing::warn!(%pid, %signal, %error, "a signal could not be sent"),
    }
}

/// Whether a process is neither a zombie nor being reaped.
#[must_use]
pub fn is_alive(stat: &Stat) -> bool {
    !matches!(stat.state, 'Z' | 'X' | 'x')
}

/// The value of this variable when the process started its program. `None` if the process does not exist, is
/// dead or belongs to another user.
#[must_use]
pub fn variable_of(pid: i32, name: &str) -> Option<OsString> {
    let beginning = [name.as_bytes(), b"="].concat();
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(&beginning[..]))?;
    Some(OsString::from_vec(value.to_vec()))
}

/// The id of the present boot.
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
    fn an_identity_holds_until_its_process_ends() {
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
        assert_eq!(ProcessIdentity::of(identity.pid()), None, "a zombie is not alive");
        child.wait().unwrap();
        assert_eq!(ProcessIdentity::of(identity.pid()), None);
    }

    #[test]
    fn only_the_identified_process_gets_the_signal() {
        let (mut child, identity) = sleeper();
        ProcessIdentity { started_at_ticks: identity.started_at_ticks + 1, ..identity.clone() }
            .signal(Signal::SIGKILL);
        assert!(identity.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_variable_is_found_by_its_complete_name() {
        let (mut child, identity) = sleeper();
        // A new process shows our environment until it has started its program.
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
