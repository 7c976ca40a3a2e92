//! The processes of a rank: the one that was started, its process group, and everything that descends from
//! them.
//!
//! The group is signalled as one while its leader is not yet reaped, for till then its number cannot be used
//! again. Everything else is looked up in `/proc` each time.

use cohabit_types::Outcome;
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::process::{LiveProcess, descendants_of, send};

/// The processes of a rank; all are descendants of this one.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    leader: Pid,
    outcome: Option<Outcome>,
    /// Whether this process has no children: whoever descends from it descends from one of them.
    is_gone: bool,
}

impl ProcessTree {
    /// The leader of its own process group, and all that follow.
    pub(crate) fn of(leader: Pid) -> ProcessTree {
        ProcessTree { leader, outcome: None, is_gone: false }
    }

    /// How the leader ended, once it has.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Whether nothing of it was left when those that had ended were last asked.
    pub(crate) const fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Asks how those ended that have, adopted ones too.
    pub(crate) fn reap(&mut self) {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => self.ended(pid, Outcome::Exited(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    self.ended(pid, Outcome::Signalled(cohabit_types::Signal(signal as i32)));
                }
                Ok(WaitStatus::StillAlive) => return,
                Err(Errno::ECHILD) => return self.is_gone = true,
                // Neither stops nor traces are waited for, and an interrupted wait is repeated.
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn ended(&mut self, pid: Pid, outcome: Outcome) {
        if pid == self.leader {
            self.outcome = Some(outcome);
        }
    }

    /// Every process that lives.
    pub(crate) fn living(&self) -> Vec<LiveProcess> {
        descendants_of(Pid::this())
    }

    /// Signals the process group.
    pub(crate) fn signal_group(&self, signal: Signal) {
        match self.outcome {
            None => _ = killpg(self.leader, signal),
            Some(_) => self.signal_where(signal, |process| process.group == self.leader),
        }
    }

    /// Signals every process, those with a group or session of their own too.
    pub(crate) fn signal_everything(&self, signal: Signal) {
        self.signal_where(signal, |_| true);
    }

    /// Signals those with a group or session of their own.
    pub(crate) fn signal_strays(&self, signal: Signal) {
        self.signal_where(signal, |process| process.group != self.leader);
    }

    fn signal_where(&self, signal: Signal, chosen: impl Fn(&LiveProcess) -> bool) {
        self.living().iter().filter(|process| chosen(process)).for_each(|process| send(process.pid, signal));
    }
}
