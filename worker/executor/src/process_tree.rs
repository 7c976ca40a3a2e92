//! The processes of a rank: the one that was started, its process group, and all their descendants.
//!
//! The group is signalled by its id while its leader is not reaped, because until then the kernel does not
//! use the id again. All other processes are looked up in `/proc` each time, on a blocking thread; meanwhile
//! the supervisor waits and reaps nothing, so no process id changes its meaning between look-up and signal.

use std::collections::HashMap;

use cohabit_actor::blocking;
use cohabit_host::process::{LiveProcess, descendants_of, send};
use cohabit_types::Outcome;
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use procfs::process::Process;
use tokio::sync::oneshot;

/// The processes of a rank; all are descendants of this process.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    leader: Pid,
    outcome: Option<Outcome>,
    /// Who wants to know how other children end.
    followers: HashMap<Pid, oneshot::Sender<Outcome>>,
    /// Whether this process has no children left, and so no descendants.
    is_gone: bool,
}

impl ProcessTree {
    /// The tree below this leader of a process group.
    pub(crate) fn new(leader: Pid) -> ProcessTree {
        ProcessTree { leader, outcome: None, followers: HashMap::new(), is_gone: false }
    }

    /// How the leader ended, if it has.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Whether no process was left at the last call of [`ProcessTree::reap`].
    pub(crate) const fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Reaps all children that have ended, adopted ones too.
    pub(crate) fn reap(&mut self) {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => self.ended(pid, Outcome::Exited(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    self.ended(pid, Outcome::Signalled(cohabit_types::Signal(signal as i32)));
                }
                Ok(WaitStatus::StillAlive) => return,
                Err(Errno::ECHILD) => return self.is_gone = true,
                // Stops and traces are not requested; an interrupted wait is repeated.
                Ok(_) | Err(_) => {}
            }
        }
    }

    fn ended(&mut self, pid: Pid, outcome: Outcome) {
        if pid == self.leader {
            self.outcome = Some(outcome);
        } else if let Some(follower) = self.followers.remove(&pid) {
            // Nobody waits any more.
            let _ = follower.send(outcome);
        }
    }

    /// Tells how another child ends, which was started a moment ago and is not reaped yet.
    pub(crate) fn follow(&mut self, child: Pid) -> oneshot::Receiver<Outcome> {
        let (follower, end) = oneshot::channel();
        self.followers.insert(child, follower);
        end
    }

    /// All living processes of the rank.
    pub(crate) async fn living(&self) -> Vec<LiveProcess> {
        blocking(|| descendants_of(Pid::this())).await
    }

    /// Signals the process group.
    pub(crate) async fn signal_group(&self, signal: Signal) {
        match self.outcome {
            None => _ = killpg(self.leader, signal),
            Some(_) => {
                let leader = self.leader;
                self.signal_where(signal, move |process| process.group == leader).await;
            }
        }
    }

    /// Whether the leader ignores a signal, as far as it can be seen.
    pub(crate) async fn leader_ignores(&self, signal: Signal) -> bool {
        let leader = self.leader.as_raw();
        let status = blocking(move || Process::new(leader).and_then(|process| process.status())).await;
        status.is_ok_and(|status| status.sigign >> (signal as i32 - 1) & 1 == 1)
    }

    /// Signals every process, including those in groups or sessions of their own.
    pub(crate) async fn signal_everything(&self, signal: Signal) {
        self.signal_where(signal, |_| true).await;
    }

    /// Signals the processes outside the group.
    pub(crate) async fn signal_strays(&self, signal: Signal) {
        let leader = self.leader;
        self.signal_where(signal, move |process| process.group != leader).await;
    }

    async fn signal_where(&self, signal: Signal, is_chosen: impl Fn(&LiveProcess) -> bool + Send + 'static) {
        blocking(move || {
            let living = descendants_of(Pid::this());
            living.iter().filter(|process| is_chosen(process)).for_each(|process| send(process.pid, signal));
        })
        .await;
    }
}
