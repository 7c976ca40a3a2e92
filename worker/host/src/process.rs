//! Sets of processes from `/proc`: the ancestors and the descendants of a process, and processes with a
//! certain variable.
//!
//! A result may be out of date when it is used; a caller that must reach every process repeats the scan until
//! nothing is left. All functions read `/proc`, and so block.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use cohabit_gpu::process::is_alive;
pub use cohabit_gpu::process::{ProcessIdentity, send, variable_of};
use cohabit_types::Span;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use procfs::process::{Process, Stat};

/// A living process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveProcess {
    /// Its process id.
    pub pid: Pid,
    /// Its process group.
    pub group: Pid,
}

impl LiveProcess {
    /// This process, if it lives.
    #[must_use]
    pub fn of(identity: &ProcessIdentity) -> Option<LiveProcess> {
        let stat = stat_of(identity.pid()).filter(is_alive)?;
        Some(LiveProcess { pid: Pid::from_raw(stat.pid), group: Pid::from_raw(stat.pgrp) })
    }
}

/// A process, told from a later one with the same process id by its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStart {
    /// Its process id.
    pub pid: i32,
    /// When it was started, in clock ticks since boot.
    pub started_at_ticks: u64,
}

/// The ancestors of this process, its parent first, as far as `/proc` shows them. `None` if one of them ended
/// meanwhile: the process has other ancestors then.
#[must_use]
pub fn ancestors_of(pid: i32) -> Option<Vec<ProcessStart>> {
    let mut ancestors = Vec::new();
    let mut child = stat_of(pid)?;
    while child.ppid != 0 {
        let parent = match stat_of(child.ppid) {
            // `/proc` may hide the processes of other users; ours are all below those.
            None if exists(child.ppid) => break,
            parent => parent.filter(|parent| can_be_parent(parent, &child))?,
        };
        ancestors.push(ProcessStart { pid: parent.pid, started_at_ticks: parent.starttime });
        child = parent;
    }
    Some(ancestors)
}

/// A process that started later has only got the process id of the parent, which has ended.
const fn can_be_parent(parent: &Stat, child: &Stat) -> bool {
    parent.starttime <= child.starttime
}

/// All living descendants of this process; orphans count if the process is a child subreaper.
#[must_use]
pub fn descendants_of(ancestor: Pid) -> Vec<LiveProcess> {
    let living = stats_below(ancestor).into_iter().filter(is_alive);
    living.map(|stat| LiveProcess { pid: Pid::from_raw(stat.pid), group: Pid::from_raw(stat.pgrp) }).collect()
}

/// The processor time that all descendants of this process have taken, those that have ended too, if their
/// parents waited for them. `None` if the process is gone.
#[must_use]
pub fn processor_time_below(ancestor: Pid) -> Option<Span> {
    let of_ended = |stat: &Stat| u64::try_from(stat.cutime + stat.cstime).unwrap_or(0);
    let of_descendant = |stat: &Stat| stat.utime + stat.stime + of_ended(stat);
    let root = of_ended(&stat_of(ancestor.as_raw())?);
    let ticks = root + stats_below(ancestor).iter().map(of_descendant).sum::<u64>();
    Some(Span::from_secs_f64(ticks as f64 / procfs::ticks_per_second() as f64))
}

/// The descendants of this process, dead ones too for which nobody has waited yet.
fn stats_below(ancestor: Pid) -> Vec<Stat> {
    let mut children: BTreeMap<i32, Vec<Stat>> = BTreeMap::new();
    for stat in all() {
        children.entry(stat.ppid).or_default().push(stat);
    }
    let mut found = Vec::new();
    let mut parents = vec![ancestor.as_raw()];
    while let Some(parent) = parents.pop() {
        let of_parent = children.remove(&parent).unwrap_or_default();
        parents.extend(of_parent.iter().map(|stat| stat.pid));
        found.extend(of_parent);
    }
    found
}

/// All living processes of our user that have this variable with this value.
#[must_use]
pub fn with_environment(name: &str, value: &OsStr) -> Vec<LiveProcess> {
    let carries = |stat: &Stat| variable_of(stat.pid, name).is_some_and(|found| found == value);
    let living = |stat: Stat| LiveProcess { pid: Pid::from_raw(stat.pid), group: Pid::from_raw(stat.pgrp) };
    all().filter(is_alive).filter(carries).map(living).collect()
}

/// When the process with this id was started, in clock ticks since boot.
#[must_use]
pub fn started_at_ticks(pid: i32) -> Option<u64> {
    stat_of(pid).map(|stat| stat.starttime)
}

/// Whether a process with this id exists, even if `/proc` does not show it to us.
#[must_use]
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
    fn the_ancestors_of_a_process_are_those_that_started_before_it() {
        let mut child = sleeper();
        let pid = child.id().cast_signed();
        let own = std::process::id().cast_signed();
        let parent = ProcessStart { pid: own, started_at_ticks: started_at_ticks(own).unwrap() };
        let ancestors = ancestors_of(pid).unwrap();
        assert_eq!(ancestors[0], parent);
        assert_eq!(ancestors[1..], ancestors_of(own).unwrap());
        let (of_child, of_parent) = (stat_of(pid).unwrap(), stat_of(own).unwrap());
        let mut reused = of_parent.clone();
        reused.starttime = of_child.starttime + 1;
        assert!(can_be_parent(&of_parent, &of_child) && !can_be_parent(&reused, &of_child));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(ancestors_of(pid), None);
    }

    #[test]
    fn descendants_and_processes_with_a_variable_are_found_while_they_live() {
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
