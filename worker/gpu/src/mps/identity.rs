//! Which processes are the daemons and servers of MPS, beyond doubt.
//!
//! A number alone names nobody, for numbers are used again; number, start time and boot do. Whose daemon a
//! process is, its environment tells: the pipe directory in it cannot be changed once the process runs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::Process;
use serde::{Deserialize, Serialize};

/// How the names of both the control program and the server begin, and all that the kernel keeps of them.
const NAME: &str = "nvidia-cuda-mps";

/// Which process it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: i32,
    /// Clock ticks since the machine was started.
    started_at_ticks: u64,
    /// Another one after each start of the machine.
    boot: String,
}

impl Identity {
    /// Of the process that has this number now, if it lives.
    pub(super) fn of(pid: i32) -> Option<Identity> {
        let stat = Process::new(pid).ok()?.stat().ok()?;
        let alive = !matches!(stat.state, 'Z' | 'X' | 'x');
        alive.then_some(Identity { pid, started_at_ticks: stat.starttime, boot: boot()? })
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&self) -> bool {
        Identity::of(self.pid).as_ref() == Some(self)
    }

    /// Whether it is a process of MPS with this pipe directory.
    pub(super) fn is_of_mps(&self, pipe: &Path) -> bool {
        is_named(self.pid) && has_pipe(self.pid, pipe) && self.is_alive()
    }

    /// Sends the signal, unless the process is gone.
    pub(super) fn signal(&self, signal: Signal) {
        if self.is_alive() {
            // It may end at this very moment, and may not be signalled if it is another user's: whoever waits
            // for its end sees both.
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }
}

/// All living processes of MPS with this pipe directory: the daemon, its servers, and whoever talks to it.
pub(super) fn all_of_mps(pipe: &Path) -> Vec<Identity> {
    let processes = procfs::process::all_processes().into_iter().flatten();
    let pids = processes.filter_map(|process| Some(process.ok()?.pid()));
    pids.filter(|pid| is_named(*pid) && has_pipe(*pid, pipe)).filter_map(Identity::of).collect()
}

/// Whether it is called, or calls itself, like a program of MPS.
fn is_named(pid: i32) -> bool {
    let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let called = read("cmdline");
    let called = called.split(|byte| *byte == 0).next().unwrap_or_default();
    let file_name = called.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    file_name.starts_with(NAME.as_bytes()) || read("comm").starts_with(NAME.as_bytes())
}

fn has_pipe(pid: i32, pipe: &Path) -> bool {
    let wanted = [OsStr::new("CUDA_MPS_PIPE_DIRECTORY=").as_bytes(), pipe.as_os_str().as_bytes()].concat();
    let environment = std::fs::read(format!("/proc/{pid}/environ"));
    environment.is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|variable| variable == wanted))
}

fn boot() -> Option<String> {
    Some(std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};
    use std::time::Duration;

    use super::super::patience::Deadline;
    use super::*;

    /// Generous: it is waited for what happens at once, or never.
    const LIMIT: Duration = Duration::from_secs(60);

    /// A process of this name that has this pipe directory; its environment is to be seen a moment after its
    /// start.
    fn sleeper(name: &str, pipe: &str) -> (Child, Identity) {
        let mut command = Command::new("sleep");
        let child = command.arg0(name).arg("1000").env("CUDA_MPS_PIPE_DIRECTORY", pipe).spawn().unwrap();
        let identity = Identity::of(child.id().cast_signed()).unwrap();
        let seen = Deadline::after(LIMIT).wait(|| has_pipe(identity.pid, Path::new(pipe)).then_some(()));
        assert!(seen.is_some());
        (child, identity)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_is_itself_until_it_ends() {
        let (mut child, identity) = sleeper("sleep", "/a");
        let reused = Identity { started_at_ticks: identity.started_at_ticks + 1, ..identity.clone() };
        let rebooted = Identity { boot: "another".into(), ..identity.clone() };
        assert!(identity.is_alive() && !reused.is_alive() && !rebooted.is_alive());
        child.kill().unwrap();
        let dead = || (!identity.is_alive()).then_some(());
        assert!(Deadline::after(LIMIT).wait(dead).is_some(), "though nobody has reaped it");
        child.wait().unwrap();
        assert_eq!(Identity::of(identity.pid), None);
    }

    #[test]
    fn a_process_of_mps_has_its_name_and_the_pipe_directory() {
        let pipe = Path::new("/tmp/of-a-daemon");
        let (daemon, identity) = sleeper("/usr/bin/nvidia-cuda-mps-control", "/tmp/of-a-daemon");
        assert!(identity.is_of_mps(pipe) && !identity.is_of_mps(Path::new("/tmp/of-a-daemo")));
        assert_eq!(all_of_mps(pipe), [identity]);
        end(daemon);
        assert_eq!(all_of_mps(pipe), []);
    }

    #[test]
    fn a_client_is_no_process_of_mps_though_it_has_the_pipe_directory() {
        let (client, identity) = sleeper("python3", "/tmp/of-a-client");
        assert!(!identity.is_of_mps(Path::new("/tmp/of-a-client")));
        assert_eq!(all_of_mps(Path::new("/tmp/of-a-client")), []);
        end(client);
    }
}
