//! Starts the daemon of a GPU and its server, and proves that the server serves.
//!
//! The control program says little: where it fails, its exit status is the diagnosis; where the server fails,
//! every command succeeds, and only the logs tell. So nothing counts as started before the server is active.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use cohabit_types::DeviceId;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{geteuid, getuid};

use super::control::{Control, ControlError};
use super::daemon::server_state;
use super::home::{DaemonRecord, file_error};
use super::patience::Deadline;
use super::server_log::{Position, last_exit, last_message};
use super::stop::stop;
use super::{MpsError, ServerState};
use crate::process::ProcessIdentity;

/// From nothing to an active server; its contexts take seconds where the driver was not in use.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A server of a driver that cannot be asked for its status has started when it has lived for so long.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long what is left of an earlier daemon has to go.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(4);

/// The server needs some files for each of its clients.
const OPEN_FILES: u64 = 16_384;

/// Starts everything anew in the home of this control; nothing is left where that does not work.
pub(super) fn start(control: &Control, gpu: &DeviceId) -> Result<DaemonRecord, MpsError> {
    stop(control, CLEANUP_TIMEOUT)?;
    control.home.begin_logs()?;
    let deadline = Deadline::after(START_TIMEOUT);
    let started = launch(control, gpu, deadline).and_then(|()| prove(control, gpu, deadline));
    started.map_err(|why| match stop(control, CLEANUP_TIMEOUT) {
        Ok(()) => why,
        Err(left) => MpsError(format!("{why}; and afterwards, {left}")),
    })
}

/// Starts the control daemon, which leaves us and lives on when we end.
fn launch(control: &Control, gpu: &DeviceId, deadline: Deadline) -> Result<(), MpsError> {
    let startup_errors = control.home.startup_errors();
    let errors =
        File::create(&startup_errors).map_err(|error| file_error("create", &startup_errors, &error))?;
    // A shell sets the limit of open files, for set here it would hold for all that this process starts.
    let mut command = control.command(Path::new("/bin/sh"));
    command.args(["-c", r#"ulimit -S -n "$1"; shift; exec "$0" -d "$@""#]);
    command.arg(&control.program).arg(open_files().to_string());
    if geteuid().is_root() {
        // Ranks of root's worker are different users; without it, each would wait for the end of all others.
        command.arg("-multiuser-server");
    }
    command.env("CUDA_VISIBLE_DEVICES", gpu.as_str());
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn();
    let mut child = spawned.map_err(|error| file_error("start", &control.program, &error))?;
    let Some(ended) = deadline.wait(|| child.try_wait().transpose()) else {
        let _ = child.kill().and_then(|()| child.wait());
        return Err(MpsError("NVIDIA's MPS control daemon did not start in time".into()));
    };
    let status = ended.map_err(|error| file_error("wait for", &control.program, &error))?;
    if status.success() {
        return Ok(());
    }
    let said = std::fs::read_to_string(&startup_errors).unwrap_or_default();
    Err(MpsError(format!("NVIDIA's MPS control daemon did not start: {}", diagnosis(status, said.trim()))))
}

/// As many as MPS needs, or as may be had.
fn open_files() -> u64 {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((OPEN_FILES, OPEN_FILES));
    soft.max(OPEN_FILES.min(hard))
}

/// Why the control daemon did not start: its status is that of CUDA, or what is left of it in eight bits.
fn diagnosis(status: ExitStatus, said: &str) -> String {
    let Some(code) = status.code() else {
        return format!("it was killed by signal {}", status.signal().unwrap_or_default());
    };
    let known = match code {
        244 => {
            "the CUDA library libcuda.so.1 cannot be loaded: install the driver's, or name its folder in LD_LIBRARY_PATH"
        }
        126 | 127 => "it cannot be executed",
        2 => "out of memory (CUDA error 2)",
        3 => "CUDA cannot be initialised (CUDA error 3)",
        34 => "CUDA error 802, system not ready: is the fabric manager running?",
        35 => {
            "CUDA error 803, driver and CUDA library do not match: reload the driver, or restart the machine"
        }
        36 => "CUDA error 804, the compatibility library does not support this GPU",
        46 => "CUDA error 46, the device is unavailable: another process may use it exclusively",
        48 => "CUDA error 304, a call of the operating system failed",
        100 => "CUDA error 100, no device: the driver is not loaded, or the GPU is not visible to this user",
        101 => "CUDA error 101, invalid device",
        231 => "CUDA error 999, unknown",
        _ if said.is_empty() => "it said nothing",
        _ => "it said",
    };
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    format!("{known}{said} (exit status {code})")
}

/// Waits for the daemon, has it start its server, and waits until the server is active.
fn prove(control: &Control, gpu: &DeviceId, deadline: Deadline) -> Result<DaemonRecord, MpsError> {
    let daemon = deadline.within(PROBE_TIMEOUT).wait(|| control.home.announced());
    let daemon = daemon.ok_or_else(|| failure(control, "NVIDIA's MPS control daemon ended at once"))?;
    match control.ask(&format!("start_server -uid {}", getuid()), deadline) {
        Ok(_) => {}
        Err(error) => {
            return Err(failure(control, &format!("NVIDIA's MPS server cannot be started: {error}")));
        }
    }
    let server = deadline
        .wait(|| first_server(control, &daemon, deadline))
        .unwrap_or_else(|| Err(failure(control, "NVIDIA's MPS server did not start in time")))?;
    wait_until_active(control, &server, deadline)?;
    let record = DaemonRecord { gpu: gpu.clone(), daemon, server, dealt_with: Position::default() };
    control.home.remember(&record)?;
    Ok(record)
}

/// The server, once there is one; or why there will be none.
fn first_server(
    control: &Control,
    daemon: &ProcessIdentity,
    deadline: Deadline,
) -> Option<Result<ProcessIdentity, MpsError>> {
    if !daemon.is_alive() || last_exit(&control.home.control_log()).is_some() {
        return Some(Err(failure(control, "NVIDIA's MPS server did not start")));
    }
    match control.ask_processes("get_server_list", deadline) {
        Ok(servers) => servers.into_iter().find_map(ProcessIdentity::of).map(Ok),
        Err(error) => Some(Err(failure(control, &format!("NVIDIA's MPS server cannot be found: {error}")))),
    }
}

fn wait_until_active(
    control: &Control,
    server: &ProcessIdentity,
    deadline: Deadline,
) -> Result<(), MpsError> {
    let since = Instant::now();
    let active = deadline.wait(|| {
        if !server.is_alive() {
            return Some(Err(failure(control, "NVIDIA's MPS server ended at once")));
        }
        match server_state(control, server, deadline) {
            Ok(ServerState::Active) => Some(Ok(())),
            Ok(ServerState::Fault) => Some(Err(failure(control, "NVIDIA's MPS server began with a fault"))),
            Err(ControlError::Unsupported) => (since.elapsed() >= PROBE_TIMEOUT).then_some(Ok(())),
            Ok(ServerState::Initializing | ServerState::Gone | ServerState::Unknown) | Err(_) => None,
        }
    });
    active.unwrap_or_else(|| Err(failure(control, "NVIDIA's MPS server was not ready in time")))
}

/// What happened, with what the logs say of it, and where they are.
fn failure(control: &Control, what: &str) -> MpsError {
    let home = &control.home;
    let told = [last_exit(&home.control_log()), last_message(&home.server_log())];
    let told: Vec<String> = told.into_iter().flatten().collect();
    let told = if told.is_empty() { "its logs say nothing".to_owned() } else { told.join("; ") };
    MpsError(format!("{what}: {told} (see '{}')", home.log().display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(code: i32, said: &str) -> String {
        diagnosis(ExitStatus::from_raw(code << 8), said)
    }

    #[test]
    fn the_exit_status_is_the_diagnosis() {
        assert!(exited(244, "").starts_with("the CUDA library libcuda.so.1 cannot be loaded"));
        assert!(exited(100, "").contains("no device"));
        assert!(exited(803 & 0xff, "").contains("do not match"));
        assert!(exited(999 & 0xff, "").contains("999"));
    }

    #[test]
    fn what_it_said_is_passed_on() {
        let said = "An instance of this daemon is already running";
        assert_eq!(exited(1, said), format!("it said: {said} (exit status 1)"));
        assert_eq!(exited(1, ""), "it said nothing (exit status 1)");
        assert_eq!(diagnosis(ExitStatus::from_raw(9), ""), "it was killed by signal 9");
    }

    #[test]
    fn the_limit_of_open_files_is_never_lowered() {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert!(open_files() >= soft && open_files() <= hard);
    }
}
