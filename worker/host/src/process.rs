//! Many processes as `/proc` shows them: who descends from one, who carries a certain environment.
//!
//! What is read here may be out of date when it is used, so whoever must be sure reads again until nothing is
//! left.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use cohabit_gpu::process::is_alive;
pub use cohabit_gpu::process::{ProcessIdentity, send, variable_of};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use procfs::process::{Process, Stat};

/// A living process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveProcess {
    pub pid: Pid,
    pub group: Pid,
}

/// All living descendants of this process. Those whose parents died count, if this process is a sub-reaper.
pub fn descendants_of(ancestor: Pid) -> Vec<LiveProcess> {
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
                found.push(LiveProcess { pid: Pid::from_raw(stat.pid), group: Pid::from_raw(stat.pgrp) });
            }
        }
    }
    found
}

/// All living processes of our user whose environment has this variable with this value.
pub fn with_environment(name: &str, value: &OsStr) -> Vec<LiveProcess> {
    let carries = |stat: &Stat| variable_of(stat.pid, name).is_some_and(|found| found == value);
    let living = |stat: Stat| LiveProcess { pid: Pid::from_raw(stat.pid), group: Pid::from_raw(stat.pgrp) };
    all().filter(is_alive).filter(carries).map(living).collect()
}

/// When the process with this number was started, in ticks since the start of the machine.
pub fn started_at_ticks(pid: i32) -> Option<u64> {
    stat_of(pid).map(|stat| stat.starttime)
}

/// Whether any process has this number, also one that `/proc` does not show us.
pub fn exists(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH)
}

fn all() -> impl Iterator<Item = Stat> {
    let processes = procfs::process::all_processes().into_iter().flatten();
    processes.filter_map(|process| process.ok()?.stat().ok())
}

fn stat_of(pid: i32) -> Option<Stat> {
    Process::new(pid).ok()?.stat().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("1000").env("COHABIT_TEST_MARK", "process.rs").spawn().unwrap()
    }

    #[test]
    fn descendants_and_marked_processes_are_found_while_they_live() {
        let mut child = sleeper();
        let pid = Pid::from_raw(child.id().cast_signed());
        let found = |living: Vec<LiveProcess>| living.iter().any(|living| living.pid == pid);
        let marked = || with_environment("COHABIT_TEST_MARK", OsStr::new("process.rs"));
        assert!(found(descendants_of(Pid::this())) && found(marked()));
        assert!(!found(with_environment("COHABIT_TEST_MARK", OsStr::new("process.r"))));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!found(descendants_of(Pid::this())) && !found(marked()));
    }
}
