//! Starts the daemon of a GPU and its server, and checks that the server is active.
//!
//! The control program reports little: where it fails, its exit status is the only diagnosis; where the
//! server fails, every command succeeds and only the logs tell. So nothing counts as started before the
//! server is active.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use cohabit_types::DeviceId;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::getuid;

use super::control::{Control, ControlError};
use super::daemon_record::DaemonRecord;
use super::deadline::Deadline;
use super::error::{MpsError, file_error};
use super::programs::ServedUsers;
use super::server_log::{Position, last_exit, last_message};
use super::status::{ServerState, server_state};
use super::stop::stop;
use crate::process::ProcessIdentity;

/// From nothing to an active server. Without persistence mode the driver initialises the GPUs of the host for
/// the first context, which was seen to take more than 20 seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Where the driver cannot be asked for the status of a server, a server that has lived for this long is
/// active.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the remains of an earlier daemon may take to end.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(4);

/// The server needs several files for each client.
const OPEN_FILES: u64 = 16_384;

/// Starts daemon and server in the directory of this control, for the processes of this user, and of all
/// others where the server serves all. Leaves nothing running when that fails.
pub(super) fn start(
    control: &Control,
    gpu: &DeviceId,
    users: ServedUsers,
    user: u32,
) -> Result<DaemonRecord, MpsError> {
    if let Some(other) = control.directory.record()?.filter(|record| record.gpu != *gpu) {
        let path = control.directory.path().display();
        return Err(MpsError(format!("'{path}' belongs to the MPS daemon of {}", other.gpu)));
    }
    stop(control, CLEANUP_TIMEOUT)?;
    control.directory.rotate_logs()?;
    let deadline = Deadline::after(START_TIMEOUT);
    let server_user = match users {
        ServedUsers::Own | ServedUsers::All => getuid().as_raw(),
        ServedUsers::OneAtATime => user,
    };
    let launched = launch(control, gpu, users, deadline);
    let started = launched.and_then(|()| check(control, gpu, server_user, deadline));
    started.map_err(|why| match stop(control, CLEANUP_TIMEOUT) {
        Ok(()) => why,
        Err(left) => MpsError(format!("{why}; then {left}")),
    })
}

/// Starts the control daemon, which detaches itself from this process.
fn launch(control: &Control, gpu: &DeviceId, users: ServedUsers, deadline: Deadline) -> Result<(), MpsError> {
    let startup_errors = control.directory.startup_errors();
    let errors =
        File::create(&startup_errors).map_err(|error| file_error("create", &startup_errors, &error))?;
    // A shell sets the limit of open files: set here, it would apply to everything that this process starts.
    let mut command = control.command(Path::new("/bin/sh"));
    command.args(["-c", r#"ulimit -S -n "$1"; shift; exec "$0" -d "$@""#]);
    command.arg(&control.program).arg(open_files().to_string());
    match users {
        ServedUsers::All => _ = command.arg("-multiuser-server"),
        ServedUsers::Own | ServedUsers::OneAtATime => {}
    }
    command.env("CUDA_VISIBLE_DEVICES", gpu.as_str());
    // It prints some of its errors to its output.
    let output = errors.try_clone().map_err(|error| file_error("open", &startup_errors, &error))?;
    let spawned = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
    let mut child = spawned.map_err(|error| file_error("start", &control.program, &error))?;
    let Some(ended) = deadline.wait(|| child.try_wait().transpose()) else {
        let _ = child.kill().and_then(|()| child.wait());
        return Err(MpsError("the MPS control daemon did not start in time".into()));
    };
    let status = ended.map_err(|error| file_error("wait for", &control.program, &error))?;
    if status.success() {
        return Ok(());
    }
    let output = std::fs::read_to_string(&startup_errors).unwrap_or_default();
    Err(MpsError(format!("the MPS control daemon did not start: {}", diagnosis(status, output.trim()))))
}

/// As many as MPS needs, within the hard limit.
fn open_files() -> u64 {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((OPEN_FILES, OPEN_FILES));
    soft.max(OPEN_FILES.min(hard))
}

/// Why the control daemon did not start: its exit status is a CUDA error, truncated to eight bits.
fn diagnosis(status: ExitStatus, output: &str) -> String {
    let Some(code) = status.code() else {
        return format!("it was killed by signal {}", status.signal().unwrap_or_default());
    };
    let known = match code {
        244 => {
            "the CUDA library libcuda.so.1 cannot be loaded: install the driver's, or put its directory into LD_LIBRARY_PATH"
        }
        126 | 127 => "it cannot be executed",
        2 => "out of memory (CUDA error 2)",
        3 => "CUDA cannot be initialised (CUDA error 3)",
        34 => "CUDA error 802, system not ready: is the fabric manager running?",
        35 => "CUDA error 803, driver and CUDA library do not match: reload the driver or restart the host",
        36 => "CUDA error 804, the compatibility library does not support this GPU",
        46 => "CUDA error 46, the device is unavailable: another process may use it exclusively",
        48 => "CUDA error 304, a system call failed",
        100 => "CUDA error 100, no device: the driver is not loaded, or the GPU is not visible to this user",
        101 => "CUDA error 101, invalid device",
        231 => "CUDA error 999, unknown",
        _ if output.is_empty() => "it printed nothing",
        _ => "it printed",
    };
    let output = if output.is_empty() { String::new() } else { format!(": {output}") };
    format!("{known}{output} (exit status {code})")
}

/// Waits for the daemon, makes it start its server, and waits until the server is active.
fn check(
    control: &Control,
    gpu: &DeviceId,
    server_user: u32,
    deadline: Deadline,
) -> Result<DaemonRecord, MpsError> {
    let daemon = deadline.within(PROBE_TIMEOUT).wait(|| control.directory.running_daemon());
    let daemon = daemon.ok_or_else(|| failure(control, "the MPS control daemon ended at once"))?;
    match control.ask(&format!("start_server -uid {server_user}"), deadline) {
        Ok(_) => {}
        Err(error) => {
            return Err(failure(control, &format!("the MPS server cannot be started: {error}")));
        }
    }
    let server = deadline
        .wait(|| first_server(control, &daemon, deadline))
        .unwrap_or_else(|| Err(failure(control, "the MPS server did not start in time")))?;
    wait_until_active(control, &server, deadline)?;
    let record =
        DaemonRecord { gpu: gpu.clone(), daemon, server, acknowledged_log_position: Position::default() };
    control.directory.write_record(&record)?;
    Ok(record)
}

/// The server once there is one, or why there will be none.
fn first_server(
    control: &Control,
    daemon: &ProcessIdentity,
    deadline: Deadline,
) -> Option<Result<ProcessIdentity, MpsError>> {
    if !daemon.is_alive() || last_exit(&control.directory.control_log()).is_some() {
        return Some(Err(failure(control, "the MPS server did not start")));
    }
    match control.ask_processes("get_server_list", deadline) {
        Ok(servers) => servers.into_iter().find_map(ProcessIdentity::of).map(Ok),
        Err(error) => Some(Err(failure(control, &format!("the MPS server cannot be found: {error}")))),
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
            return Some(Err(failure(control, "the MPS server ended at once")));
        }
        match server_state(control, server, deadline) {
            Ok(ServerState::Active) => Some(Ok(())),
            Ok(ServerState::Fault) => Some(Err(failure(control, "the MPS server started with a fault"))),
            Err(ControlError::Unsupported) => (since.elapsed() >= PROBE_TIMEOUT).then_some(Ok(())),
            Ok(ServerState::Initializing | ServerState::Gone | ServerState::Unknown) | Err(_) => None,
        }
    });
    active.unwrap_or_else(|| Err(failure(control, "the MPS server was not ready in time")))
}

/// What happened, what the logs say about it, and where they are.
fn failure(control: &Control, what: &str) -> MpsError {
    let directory = &control.directory;
    let messages = [last_exit(&directory.control_log()), last_message(&directory.server_log())];
    let messages: Vec<String> = messages.into_iter().flatten().collect();
    let logged = if messages.is_empty() { "its logs are empty".to_owned() } else { messages.join("; ") };
    MpsError(format!("{what}: {logged} (see '{}')", directory.log().display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(code: i32, output: &str) -> String {
        diagnosis(ExitStatus::from_raw(code << 8), output)
    }

    #[test]
    fn the_exit_status_is_the_diagnosis() {
        assert!(exited(244, "").starts_with("the CUDA library libcuda.so.1 cannot be loaded"));
        assert!(exited(100, "").contains("no device"));
        assert!(exited(803 & 0xff, "").contains("do not match"));
        assert!(exited(999 & 0xff, "").contains("999"));
    }

    #[test]
    fn its_output_is_quoted() {
        let output = "An instance of this daemon is already running";
        assert_eq!(exited(1, output), format!("it printed: {output} (exit status 1)"));
        assert_eq!(exited(1, ""), "it printed nothing (exit status 1)");
        assert_eq!(diagnosis(ExitStatus::from_raw(9), ""), "it was killed by signal 9");
    }

    #[test]
    fn the_limit_of_open_files_is_never_lowered() {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert!(open_files() >= soft && open_files() <= hard);
    }
}
