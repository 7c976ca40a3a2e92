//! Processes as `/proc` shows them: who one is, who descends from one, who carries a certain environment.
//!
//! A process number alone names nobody, for numbers are used again; number, start time and boot do. What is
//! read here may be out of date when it is used, so whoever must be sure reads again until nothing is left.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::{Process, Stat};
use serde::{Deserialize, Serialize};

/// Which process it is, beyond doubt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pid: i32,
    /// Clock ticks since the machine was started.
    started_at_ticks: u64,
    /// Another one after each start of the machine.
    boot: String,
}

impl Identity {
    /// This process.
    pub(crate) fn own() -> io::Result<Identity> {
        let stat = Process::myself().and_then(|process| process.stat()).map_err(io::Error::other)?;
        Ok(Identity { pid: stat.pid, started_at_ticks: stat.starttime, boot: boot()? })
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&self) -> bool {
        let same = |stat: &Stat| stat.starttime == self.started_at_ticks && is_alive(stat);
        self.is_of_this_boot() && stat_of(self.pid).as_ref().is_some_and(same)
    }

    /// Whether the machine has not been started since: if it has, nothing is left of what ran then.
    pub(crate) fn is_of_this_boot(&self) -> bool {
        boot().is_ok_and(|boot| boot == self.boot)
    }

    /// Kills it.
    pub(crate) fn kill(&self) {
        send(Pid::from_raw(self.pid), Signal::SIGKILL);
    }
}

fn boot() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// A living process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Living {
    pub(crate) pid: Pid,
    pub(crate) group: Pid,
}

/// All living descendants of this process. Those whose parents died count, if this process is a sub-reaper.
pub(crate) fn descendants_of(ancestor: Pid) -> Vec<Living> {
    let mut children: BTreeMap<i32, Vec<Stat>> = BTreeMap::new();
    for stat in all() {
        children.entry(stat.ppid).or_default().push(stat);
    }
    let mut found = Vec::new();
    let mut parents = vec![ancestor.as_raw()];
    while let Some(parent) = parents.pop() {
        for stat in children.remove(&parent).unwrap_or_default() {
            parents.push(stat.pid);
            if is_alive(&stat) {
                found.push(Living { pid: Pid::from_raw(stat.pid), group: Pid::from_raw(stat.pgrp) });
            }
        }
    }
    found
}

/// All living processes of our user whose environment has this variable with this value.
pub(crate) fn with_environment(name: &str, value: &std::ffi::OsStr) -> Vec<Living> {
    let wanted = [name.as_bytes(), b"=", value.as_bytes()].concat();
    let carries = |stat: &Stat| environment_of(stat.pid).split(is_zero).any(|variable| variable == wanted);
    let living = |stat: Stat| Living { pid: Pid::from_raw(stat.pid), group: Pid::from_raw(stat.pgrp) };
    all().filter(is_alive).filter(carries).map(living).collect()
}

/// What this variable was when the process started its program; nothing where we may not look.
pub(crate) fn variable_of(pid: i32, name: &str) -> Option<OsString> {
    let beginning = [name.as_bytes(), b"="].concat();
    let environment = environment_of(pid);
    let value = environment.split(is_zero).find_map(|variable| variable.strip_prefix(&beginning[..]))?;
    Some(OsString::from_vec(value.to_vec()))
}

/// Empty where there is no such process, it is dead, or it is another user's.
fn environment_of(pid: i32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

fn is_zero(byte: &u8) -> bool {
    *byte == 0
}

/// When the process with this number was started, in ticks since the start of the machine.
pub(crate) fn started_at_ticks(pid: i32) -> Option<u64> {
    stat_of(pid).map(|stat| stat.starttime)
}

/// Whether any process has this number, also one that `/proc` does not show us.
pub(crate) fn exists(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH)
}

/// Sends the signal; a process that has gone meanwhile needs none.
pub(crate) fn send(pid: Pid, signal: Signal) {
    match kill(pid, signal) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => tracing::warn!(%pid, %signal, %error, "a signal could not be sent"),
    }
}

fn all() -> impl Iterator<Item = Stat> {
    let processes = procfs::process::all_processes().into_iter().flatten();
    processes.filter_map(|process| process.ok()?.stat().ok())
}

fn stat_of(pid: i32) -> Option<Stat> {
    Process::new(pid).ok()?.stat().ok()
}

/// Neither a zombie nor on its way to be reaped.
fn is_alive(stat: &Stat) -> bool {
    !matches!(stat.state, 'Z' | 'X' | 'x')
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("1000").env("COHABIT_TEST_MARK", "process.rs").spawn().unwrap()
    }

    #[test]
    fn a_process_is_itself_until_it_ends() {
        let mut child = sleeper();
        let pid = child.id().cast_signed();
        let identity =
            Identity { pid, started_at_ticks: stat_of(pid).unwrap().starttime, boot: boot().unwrap() };
        let reused = Identity { started_at_ticks: identity.started_at_ticks + 1, ..identity.clone() };
        let rebooted = Identity { boot: "another".into(), ..identity.clone() };
        assert!(Identity::own().unwrap().is_alive() && identity.is_alive());
        assert!(!reused.is_alive() && !rebooted.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!identity.is_alive());
    }

    #[test]
    fn descendants_and_marked_processes_are_found_while_they_live() {
        let mut child = sleeper();
        let pid = Pid::from_raw(child.id().cast_signed());
        let found = |living: Vec<Living>| living.iter().any(|living| living.pid == pid);
        let marked = || with_environment("COHABIT_TEST_MARK", OsStr::new("process.rs"));
        assert!(found(descendants_of(Pid::this())) && found(marked()));
        assert!(!found(with_environment("COHABIT_TEST_MARK", OsStr::new("process.r"))));
        assert_eq!(variable_of(pid.as_raw(), "COHABIT_TEST_MARK").unwrap(), "process.rs");
        assert_eq!(variable_of(pid.as_raw(), "COHABIT_TEST"), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!found(descendants_of(Pid::this())) && !found(marked()));
    }
}
