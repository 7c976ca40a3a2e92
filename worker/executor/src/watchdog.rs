//! The watchdog of an executor: its parent process, which ends a rank when nobody else can.
//!
//! An executor may be suspended, or killed together with its daemon, and the head gives its job to another
//! node. The watchdog knows until when the rank may run if nothing more is heard of the head: its executor
//! says so through a pipe. Then it kills all its descendants. It is a child subreaper, so processes whose
//! executor was killed become its children, and a daemon finds them below it, whatever they did to their
//! environment and session.
//!
//! It is the process that the daemon started; the executor is a fork of it, made before there is a second
//! thread. So the two share nearly all their memory. It has a name of its own, so that who kills by name
//! does not kill both.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use cohabit_host::clock::{now, since_boot};
use cohabit_host::process::{ProcessIdentity, descendants_of, send};
use cohabit_types::{Span, Time};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, dup2_stdin, getppid, pipe2, read, setsid, write};

use crate::error_log::log_error;
use crate::raw;

/// How the kernel lists it.
const NAME: &std::ffi::CStr = c"rank-watchdog";

/// How much longer than its executor it waits before it kills: an executor that acts ends its rank, and says
/// how it ended. With the slack and the lease term it is less than what the head adds to the orphan grace.
const MARGIN: Span = Span::from_secs(10);

/// How much later than needed the executor lets it act, so that it need not be told with each lease.
const SLACK: Span = Span::from_secs(5);

/// The pause between two rounds of SIGKILL.
const KILL_INTERVAL: Duration = Duration::from_millis(100);

/// How often it looks whether orphans of a killed executor are left.
const ORPHAN_INTERVAL: Duration = Duration::from_secs(1);

/// The executor's end of the pipe to its watchdog.
pub(crate) struct Watchdog {
    pipe: Option<OwnedFd>,
    process: Option<ProcessIdentity>,
    /// When it kills, as it was told last.
    kill_at: Time,
}

/// Runs `executor` in a process of its own, with this process as its watchdog. Must be called before there is
/// a second thread.
pub(crate) fn under_watchdog(executor: impl FnOnce(Watchdog) -> ExitCode) -> ExitCode {
    // The terminal of whoever started the daemon ends neither of the two.
    let _ = setsid();
    // No signal meets the watchdog before it blocks them.
    let of_executor = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).expect("the mask is valid");
    let ends = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).map_err(io::Error::from);
    let watchdog = match ends.and_then(|ends| Ok((raw::split()?, ends))) {
        Ok((ForkResult::Parent { child }, (pipe, other_end))) => {
            drop(other_end);
            return watch(&pipe, child);
        }
        Ok((ForkResult::Child, (_, pipe))) => Watchdog::with(pipe),
        Err(error) => {
            log_error(&format!("there is no watchdog: {error}"));
            Watchdog { pipe: None, process: None, kill_at: Time::NEVER }
        }
    };
    of_executor.thread_set_mask().expect("the mask is valid");
    executor(watchdog)
}

impl Watchdog {
    fn with(pipe: OwnedFd) -> Watchdog {
        Watchdog { pipe: Some(pipe), process: ProcessIdentity::of(getppid().as_raw()), kill_at: Time::NEVER }
    }

    /// Its process.
    pub(crate) const fn process(&self) -> Option<&ProcessIdentity> {
        self.process.as_ref()
    }

    /// The executor ends its rank at this time, if it acts, should nothing more be heard of the head.
    pub(crate) fn expect_end(&mut self, at: Time) {
        let needed = at + MARGIN;
        if self.kill_at < needed || self.kill_at == Time::NEVER {
            self.tell(needed + SLACK);
        }
    }

    /// No rank runs.
    pub(crate) fn rest(&mut self) {
        self.tell(Time::NEVER);
    }

    /// A watchdog that is gone, or suspended, cannot be told.
    fn tell(&mut self, kill_at: Time) {
        let Some(pipe) = &self.pipe else { return };
        let since_boot = match kill_at {
            Time::NEVER => u64::MAX,
            at => (since_boot() + at.since(now())).as_micros(),
        };
        if write(pipe, &since_boot.to_ne_bytes()).is_ok() {
            self.kill_at = kill_at;
        }
    }
}

/// What a watchdog knows.
struct Watch<'a> {
    pipe: &'a OwnedFd,
    executor: Pid,
    /// How the executor ended, once it has.
    exit: Option<ExitCode>,
    /// When everything is killed, as time since boot; `None`: never.
    kill_at: Option<Duration>,
}

/// Watches until no process is left. All signals are blocked.
fn watch(pipe: &OwnedFd, executor: Pid) -> ExitCode {
    let _ = prctl::set_name(NAME);
    let _ = prctl::set_child_subreaper(true);
    // The assignments are the executor's.
    if let Ok(nothing) = File::open("/dev/null") {
        let _ = dup2_stdin(nothing);
    }
    let mut watch = Watch { pipe, executor, exit: None, kill_at: None };
    while !watch.has_ended() {
        watch.listen();
        if watch.kill_at.is_some_and(|at| at <= since_boot().into()) {
            watch.kill_everything();
        }
    }
    watch.exit.unwrap_or(ExitCode::FAILURE)
}

impl Watch<'_> {
    /// Waits until the executor says something or ends, or something is to be done.
    fn listen(&mut self) {
        let until_kill = self.kill_at.map(|at| at.saturating_sub(since_boot().into()));
        let pause = match self.exit {
            None => until_kill,
            // The pipe says nothing more.
            Some(_) => return sleep(until_kill.map_or(ORPHAN_INTERVAL, |it| it.min(ORPHAN_INTERVAL))),
        };
        let timeout = pause.map_or(PollTimeout::NONE, |pause| {
            PollTimeout::try_from(pause + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        let _ = poll(&mut [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)], timeout);
        let mut words = [0; 512];
        match read(self.pipe, &mut words) {
            // Nobody can write: the executor ends.
            Ok(0) => self.await_executor(),
            // Each write is whole, so all words are.
            Ok(length) => {
                let last = words[..length].as_chunks().0.last().copied().map_or(u64::MAX, u64::from_ne_bytes);
                self.kill_at = (last != u64::MAX).then(|| Duration::from_micros(last));
            }
            Err(_) => {}
        }
    }

    fn await_executor(&mut self) {
        let code = match waitpid(self.executor, None) {
            Ok(WaitStatus::Exited(_, code)) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
            Ok(_) | Err(_) => ExitCode::FAILURE,
        };
        self.exit = Some(code);
    }

    /// Reaps orphans of the executor. Whether it has ended and nothing is left.
    fn has_ended(&self) -> bool {
        while self.exit.is_some() {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return false,
                Err(Errno::ECHILD) => return true,
                Ok(_) | Err(_) => {}
            }
        }
        false
    }

    /// Kills everything below this process, the executor included: what a killed parent leaves becomes a
    /// child of this process, and is found in the next round.
    fn kill_everything(&mut self) {
        loop {
            descendants_of(Pid::this()).iter().for_each(|process| send(process.pid, Signal::SIGKILL));
            if self.exit.is_none() {
                self.await_executor();
            }
            if self.has_ended() {
                return;
            }
            sleep(KILL_INTERVAL);
        }
    }
}
