//! Finds the daemons and servers of MPS by their account and their names, and their directory by the pipe
//! directory in their environment.
//!
//! A job can give a process any name and environment, but on a worker that is root neither the worker's
//! account nor the daemon as its parent. A server of another account is a child of the daemon.

use std::path::Path;

use nix::unistd::geteuid;
use procfs::process::Process;

use crate::process::{ProcessIdentity, variable_of};

/// The beginning of the names of both programs; the kernel keeps no more of a name than this.
const PROGRAM_PREFIX: &str = "nvidia-cuda-mps";

/// Whether it is a living process of MPS with this pipe directory.
pub(super) fn is_of_mps(process: &ProcessIdentity, pipe: &Path) -> bool {
    is_candidate(process.pid(), pipe) && process.is_alive()
}

/// All living processes of MPS with this pipe directory: the daemon, its servers, and control programs in a
/// session with it.
pub(super) fn all_of_mps(pipe: &Path) -> Vec<ProcessIdentity> {
    let processes = procfs::process::all_processes().into_iter().flatten();
    let pids = processes.filter_map(|process| Some(process.ok()?.pid()));
    pids.filter(|pid| is_candidate(*pid, pipe)).filter_map(ProcessIdentity::of).collect()
}

fn is_candidate(pid: i32, pipe: &Path) -> bool {
    let is_server = || parent_of(pid).is_some_and(|parent| is_of_own_account(parent) && is_mps(parent, pipe));
    is_mps(pid, pipe) && (is_of_own_account(pid) || is_server())
}

fn is_mps(pid: i32, pipe: &Path) -> bool {
    is_named(pid) && has_pipe(pid, pipe)
}

fn parent_of(pid: i32) -> Option<i32> {
    Process::new(pid).and_then(|process| process.stat()).ok().map(|stat| stat.ppid)
}

/// The owner of a file in `/proc` does not tell: it is root for a process that cannot be dumped.
fn is_of_own_account(pid: i32) -> bool {
    let status = Process::new(pid).and_then(|process| process.status());
    let own = geteuid().as_raw();
    status.is_ok_and(|status| status.ruid == own && status.euid == own)
}

/// Whether its command line or its name is that of an MPS program.
fn is_named(pid: i32) -> bool {
    let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let called = read("cmdline");
    let called = called.split(|byte| *byte == 0).next().unwrap_or_default();
    let file_name = called.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    file_name.starts_with(PROGRAM_PREFIX.as_bytes()) || read("comm").starts_with(PROGRAM_PREFIX.as_bytes())
}

fn has_pipe(pid: i32, pipe: &Path) -> bool {
    variable_of(pid, "CUDA_MPS_PIPE_DIRECTORY").is_some_and(|value| *value == *pipe)
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};
    use std::time::Duration;

    use super::super::deadline::Deadline;
    use super::*;

    /// Generous: what is waited for happens at once or never.
    const LIMIT: Duration = Duration::from_secs(60);

    /// A process with this name and this pipe directory. Its environment becomes visible a moment after its
    /// start.
    pub(in super::super) fn sleeper(name: &str, pipe: &Path) -> (Child, ProcessIdentity) {
        sleeper_of(geteuid().as_raw(), name, pipe)
    }

    fn sleeper_of(uid: u32, name: &str, pipe: &Path) -> (Child, ProcessIdentity) {
        let mut command = Command::new("sleep");
        command.arg0(name).arg("1000").env("CUDA_MPS_PIPE_DIRECTORY", pipe).uid(uid);
        let child = command.spawn().unwrap();
        let identity = ProcessIdentity::of(child.id().cast_signed()).unwrap();
        let seen = Deadline::after(LIMIT).wait(|| has_pipe(identity.pid(), pipe).then_some(()));
        assert!(seen.is_some());
        (child, identity)
    }

    pub(in super::super) fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_of_mps_is_found_by_name_and_pipe_directory() {
        let pipe = Path::new("/tmp/of-a-daemon");
        let (daemon, identity) = sleeper("/usr/bin/nvidia-cuda-mps-control", Path::new("/tmp/of-a-daemon"));
        assert!(is_of_mps(&identity, pipe) && !is_of_mps(&identity, Path::new("/tmp/of-a-daemo")));
        assert_eq!(all_of_mps(pipe), [identity]);
        end(daemon);
        assert_eq!(all_of_mps(pipe), []);
    }

    /// Only root can start a process of another account.
    #[test]
    fn a_process_of_another_account_is_not_of_mps_whatever_its_name_and_environment() {
        if !geteuid().is_root() {
            return;
        }
        let pipe = Path::new("/tmp/of-another-account");
        let (forged, identity) = sleeper_of(65_534, "/usr/bin/nvidia-cuda-mps-control", pipe);
        assert!(!is_of_mps(&identity, pipe));
        assert_eq!(all_of_mps(pipe), []);
        end(forged);
    }

    #[test]
    fn a_client_with_the_pipe_directory_is_not_a_process_of_mps() {
        let (client, identity) = sleeper("python3", Path::new("/tmp/of-a-client"));
        assert!(!is_of_mps(&identity, Path::new("/tmp/of-a-client")));
        assert_eq!(all_of_mps(Path::new("/tmp/of-a-client")), []);
        end(client);
    }
}
