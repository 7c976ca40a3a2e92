//! Which processes are daemons and servers of MPS, and of which home: their name tells the one, the pipe
//! directory in their environment the other.

use std::path::Path;

use crate::process::{ProcessIdentity, variable_of};

/// How the names of both the control program and the server begin, and all that the kernel keeps of them.
const PROGRAM_PREFIX: &str = "nvidia-cuda-mps";

/// Whether it is a process of MPS with this pipe directory, and lives.
pub(super) fn is_of_mps(process: &ProcessIdentity, pipe: &Path) -> bool {
    is_named(process.pid()) && has_pipe(process.pid(), pipe) && process.is_alive()
}

/// All living processes of MPS with this pipe directory: the daemon, its servers, and whoever talks to it.
pub(super) fn all_of_mps(pipe: &Path) -> Vec<ProcessIdentity> {
    let processes = procfs::process::all_processes().into_iter().flatten();
    let pids = processes.filter_map(|process| Some(process.ok()?.pid()));
    pids.filter(|pid| is_named(*pid) && has_pipe(*pid, pipe)).filter_map(ProcessIdentity::of).collect()
}

/// Whether it is called, or calls itself, like a program of MPS.
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
    fn sleeper(name: &str, pipe: &str) -> (Child, ProcessIdentity) {
        let mut command = Command::new("sleep");
        let child = command.arg0(name).arg("1000").env("CUDA_MPS_PIPE_DIRECTORY", pipe).spawn().unwrap();
        let identity = ProcessIdentity::of(child.id().cast_signed()).unwrap();
        let seen = Deadline::after(LIMIT).wait(|| has_pipe(identity.pid(), Path::new(pipe)).then_some(()));
        assert!(seen.is_some());
        (child, identity)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_of_mps_has_its_name_and_the_pipe_directory() {
        let pipe = Path::new("/tmp/of-a-daemon");
        let (daemon, identity) = sleeper("/usr/bin/nvidia-cuda-mps-control", "/tmp/of-a-daemon");
        assert!(is_of_mps(&identity, pipe) && !is_of_mps(&identity, Path::new("/tmp/of-a-daemo")));
        assert_eq!(all_of_mps(pipe), [identity]);
        end(daemon);
        assert_eq!(all_of_mps(pipe), []);
    }

    #[test]
    fn a_client_is_no_process_of_mps_though_it_has_the_pipe_directory() {
        let (client, identity) = sleeper("python3", "/tmp/of-a-client");
        assert!(!is_of_mps(&identity, Path::new("/tmp/of-a-client")));
        assert_eq!(all_of_mps(Path::new("/tmp/of-a-client")), []);
        end(client);
    }
}
