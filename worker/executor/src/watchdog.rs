//! The watchdog of an executor: its parent process, which ends a rank when nobody else can.
//!
//! An executor may be suspended, or killed together with its daemon, and the head gives its job to another
//! node. The executor keeps the time in a file in memory until which the rank may run, should nothing more be
//! heard of the head. The watchdog looks at it every few seconds, so that no rank has to wake it, and kills
//! all its descendants when that time has passed. It is a child subreaper, so processes whose executor was
//! killed become its children, and a daemon finds them below it, whatever they did to their environment and
//! session.
//!
//! It is the process that the daemon started; the executor is a fork of it, made before there is a second
//! thread. So the two share nearly all their memory. It has a name of its own, so that whoever kills by name
//! does not kill both. A pipe between the two, through which nothing is said, ends with the executor.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use cohabit_actor::give_back;
use cohabit_host::clock::{now, since_boot};
use cohabit_host::process::{ProcessIdentity, descendants_of, send};
use cohabit_types::Time;
use cohabit_worker_core::WATCHDOG_INTERVAL;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, dup2_stdin, getppid, pipe2, setsid};

use crate::error_log::log_error;
use crate::raw;

/// How the kernel lists it.
const NAME: &std::ffi::CStr = c"rank-watchdog";

/// The pause between two rounds of SIGKILL.
const KILL_INTERVAL: Duration = Duration::from_millis(100);

/// How often it looks whether orphans of a killed executor are left.
const ORPHAN_INTERVAL: Duration = Duration::from_secs(1);

/// What an executor knows of its watchdog.
pub(crate) struct Watchdog {
    /// `None` if there is none.
    kill_time: Option<KillTime>,
    process: Option<ProcessIdentity>,
    /// Ends with this process.
    _pipe: Option<OwnedFd>,
    /// When it kills, as last stored.
    kill_at: Time,
}

/// The time at which everything is killed: a file in memory with a number of microseconds since boot.
struct KillTime(File);

impl KillTime {
    fn new() -> io::Result<KillTime> {
        let file = KillTime(File::from(memfd_create(c"kill-time", MFdFlags::MFD_CLOEXEC)?));
        file.store(u64::MAX)?;
        Ok(file)
    }

    fn store(&self, micros: u64) -> io::Result<()> {
        self.0.write_all_at(&micros.to_ne_bytes(), 0)
    }

    /// `None`: never.
    fn load(&self) -> Option<Duration> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, 0).ok()?;
        Some(u64::from_ne_bytes(bytes)).filter(|micros| *micros != u64::MAX).map(Duration::from_micros)
    }
}

/// Runs `executor` in a process of its own, with this process as its watchdog. Must be called before there is
/// a second thread.
pub(crate) fn under_watchdog(executor: impl FnOnce(Watchdog) -> ExitCode) -> ExitCode {
    // The terminal of whoever started the daemon ends neither of the two.
    let _ = setsid();
    // No signal meets the watchdog before it blocks them.
    let of_executor = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).expect("the mask is valid");
    let shared = KillTime::new().and_then(|kill_time| Ok((kill_time, pipe2(OFlag::O_CLOEXEC)?)));
    let watchdog = match shared.and_then(|shared| Ok((raw::split()?, shared))) {
        Ok((ForkResult::Parent { child }, (kill_time, (pipe, other_end)))) => {
            drop(other_end);
            return watch(kill_time, pipe, child);
        }
        Ok((ForkResult::Child, (kill_time, (_, pipe)))) => Watchdog {
            kill_time: Some(kill_time),
            process: ProcessIdentity::of(getppid().as_raw()),
            _pipe: Some(pipe),
            kill_at: Time::NEVER,
        },
        Err(error) => {
            log_error(&format!("there is no watchdog: {error}"));
            Watchdog { kill_time: None, process: None, _pipe: None, kill_at: Time::NEVER }
        }
    };
    of_executor.thread_set_mask().expect("the mask is valid");
    executor(watchdog)
}

impl Watchdog {
    /// Its process.
    pub(crate) const fn process(&self) -> Option<&ProcessIdentity> {
        self.process.as_ref()
    }

    /// It kills at this time, should nothing more be heard of the head.
    pub(crate) fn kill_at(&mut self, at: Time) {
        self.set(at);
    }

    /// No rank runs.
    pub(crate) fn rest(&mut self) {
        self.set(Time::NEVER);
    }

    fn set(&mut self, kill_at: Time) {
        let Some(kill_time) = self.kill_time.as_ref().filter(|_| self.kill_at != kill_at) else { return };
        let micros = match kill_at {
            Time::NEVER => u64::MAX,
            at => (since_boot() + at.since(now())).as_micros(),
        };
        match kill_time.store(micros) {
            Ok(()) => self.kill_at = kill_at,
            Err(error) => log_error(&format!("the watchdog cannot be told: {error}")),
        }
    }
}

/// What a watchdog knows.
struct Watch {
    kill_time: KillTime,
    /// Ends with the executor.
    pipe: OwnedFd,
    executor: Pid,
    /// How the executor ended, once it has.
    exit: Option<ExitCode>,
    /// Whether it has given back the memory of what only its start needed.
    is_small: bool,
}

/// Watches until no process is left. All signals are blocked.
fn watch(kill_time: KillTime, pipe: OwnedFd, executor: Pid) -> ExitCode {
    // Neither fails on a Linux of our time with valid arguments.
    let _ = prctl::set_name(NAME);
    let _ = prctl::set_child_subreaper(true);
    // The assignments are the executor's.
    if let Ok(nothing) = File::open("/dev/null") {
        let _ = dup2_stdin(nothing);
    }
    let mut watch = Watch { kill_time, pipe, executor, exit: None, is_small: false };
    while !watch.has_ended() {
        watch.wait();
        if watch.kill_time.load().is_some_and(|at| at <= since_boot().into()) {
            watch.kill_everything();
        }
    }
    watch.exit.unwrap_or(ExitCode::FAILURE)
}

impl Watch {
    /// Waits until the executor ends, or it is time to look again.
    fn wait(&mut self) {
        if self.exit.is_some() {
            return sleep(ORPHAN_INTERVAL);
        }
        let timeout = PollTimeout::try_from(Duration::from(WATCHDOG_INTERVAL)).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(1..) => self.await_executor(),
            // It has nothing more to do than this.
            Ok(_) if !std::mem::replace(&mut self.is_small, true) => give_back(),
            Ok(_) | Err(_) => {}
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
