//! NVIDIA MPS: whether shares of each GPU can be enforced, and what the MPS daemons need on this machine.

use std::env;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, absolute};

use cohabit_client::types::{Bytes, Device, DeviceSharing};
use cohabit_gpu::mps::{MpsDirectory, MpsPrograms, daemon_of_pipe};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::statvfs;
use nix::unistd::geteuid;

use super::device_name::device_name;
use super::findings::Finding;

const SHARING: &str = "gpu sharing";
const PROGRAMS: &str = "mps programs";
const PIPES: &str = "mps pipes";
const MEMORY: &str = "mps shared memory";
const FILES: &str = "mps open files";
const FOREIGN: &str = "foreign mps";

/// NVIDIA's recommendation for the server.
const MIN_OPEN_FILES: u64 = 16_384;
/// Clients keep their queues and pinned memory there.
const MIN_SHARED_MEMORY: Bytes = Bytes(1 << 30);
/// The default directory of MPS.
const DEFAULT_PIPE_DIRECTORY: &str = "/tmp/nvidia-mps";

pub(super) fn check(devices: &[Device], state: &Path) -> Vec<Finding> {
    let mut findings: Vec<Finding> = devices.iter().map(sharing).collect();
    findings.push(programs());
    findings.extend(devices.first().map(|device| pipes(device, state)));
    findings.push(shared_memory(Path::new("/dev/shm")));
    findings.push(open_files());
    let default = Path::new(DEFAULT_PIPE_DIRECTORY);
    findings.push(foreign(default, daemon_of_pipe(default)));
    findings
}

fn sharing(device: &Device) -> Finding {
    let gpu = device_name(device);
    match &device.condition.sharing {
        DeviceSharing::Enforced => {
            Finding::ok(SHARING, format!("jobs can share {gpu}; MPS enforces their limits"))
        }
        DeviceSharing::OneUser(why) => Finding::warning(
            SHARING,
            format!("jobs of one user at a time can share {gpu}; MPS enforces their limits"),
            why,
        ),
        DeviceSharing::Unenforced(why) => {
            Finding::warning(SHARING, format!("jobs can share {gpu}, but their limits are not enforced"), why)
        }
        DeviceSharing::Alone(why) => Finding::warning(SHARING, format!("jobs cannot share {gpu}"), why),
    }
}

fn programs() -> Finding {
    match MpsPrograms::find(&env::var("PATH").unwrap_or_default()) {
        Ok(tools) => {
            let version = tools.version().map(|version| format!(", version {version}")).unwrap_or_default();
            Finding::ok(PROGRAMS, format!("{}{version}", tools.control().display()))
        }
        Err(error) => Finding::warning(PROGRAMS, "not found", error.to_string()),
    }
}

/// Where a worker creates the pipe directories, whose paths must be short, and whether they can be private.
fn pipes(device: &Device, state: &Path) -> Finding {
    let homes = match MpsDirectory::locate(state, &device.id) {
        Ok(home) => home.parent().unwrap_or(&home).to_owned(),
        Err(error) => {
            return Finding::error(PIPES, error.to_string(), "choose another directory with --state");
        }
    };
    let shown = homes.display();
    match fs::symlink_metadata(&homes) {
        Ok(found) if !found.is_dir() || found.uid() != geteuid().as_raw() => Finding::error(
            PIPES,
            format!("{shown} is not a directory of this user"),
            "remove it, or choose another directory with --state",
        ),
        Ok(found) if found.mode() & 0o066 != 0 => Finding::warning(
            PIPES,
            format!("{shown} is accessible to other users"),
            format!("chmod 700 {shown}; a worker does this when it starts MPS"),
        ),
        Err(error) if error.kind() != ErrorKind::NotFound => Finding::error(
            PIPES,
            format!("cannot access {shown} ({error})"),
            "grant yourself access, or choose another directory with --state",
        ),
        Ok(_) | Err(_) => {
            let is_near = absolute(state).is_ok_and(|state| homes.starts_with(state));
            let why = if is_near {
                ""
            } else {
                ", because the path of the state directory is too long for sockets"
            };
            Finding::ok(PIPES, format!("in {shown}, private to this user{why}"))
        }
    }
}

fn shared_memory(folder: &Path) -> Finding {
    let shown = folder.display();
    let advice = "increase its size; for a container, use --shm-size=8g or --ipc=host";
    match statvfs(folder) {
        Ok(system) => {
            let size = Bytes(system.blocks() * system.fragment_size());
            match size >= MIN_SHARED_MEMORY {
                true => Finding::ok(MEMORY, format!("{shown} has {size}")),
                false => Finding::warning(MEMORY, format!("{shown} has only {size}"), advice),
            }
        }
        Err(error) => Finding::warning(MEMORY, format!("cannot access {shown} ({error})"), advice),
    }
}

fn open_files() -> Finding {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, hard)) if hard >= MIN_OPEN_FILES => Finding::ok(FILES, format!("up to {hard} at once")),
        Ok((_, hard)) => Finding::warning(
            FILES,
            format!("only {hard} at once: an MPS server with many clients needs more"),
            format!("raise LimitNOFILE (systemd) or `ulimit -Hn` to {MIN_OPEN_FILES}"),
        ),
        Err(error) => {
            Finding::warning(FILES, format!("cannot determine the limit ({error})"), "check `ulimit -Hn`")
        }
    }
}

/// An MPS daemon that Cohabit did not start.
fn foreign(pipes: &Path, daemon: io::Result<Option<i32>>) -> Finding {
    let shown = pipes.display();
    match daemon {
        Ok(None) => Finding::ok(FOREIGN, format!("no other MPS daemon in {shown}")),
        Ok(Some(pid)) => Finding::warning(
            FOREIGN,
            format!("an MPS daemon that Cohabit did not start, pid {pid}, serves {shown}"),
            "stop it with `echo quit | nvidia-cuda-mps-control`; its clients time-slice with those of Cohabit",
        ),
        Err(error) => Finding::warning(
            FOREIGN,
            format!("cannot tell whether an MPS daemon serves {shown} ({error})"),
            "look for nvidia-cuda-mps-control in `ps -ef`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use cohabit_client::types::{DeviceId, DeviceKind};

    use super::super::findings::Diagnosis;
    use super::*;

    fn h200() -> Device {
        Device::new(DeviceId("GPU-a".into()), DeviceKind::Gpu, "NVIDIA H200", None)
    }

    fn shared(sharing: DeviceSharing) -> Finding {
        let mut device = h200();
        device.condition.sharing = sharing;
        super::sharing(&device)
    }

    #[test]
    fn only_enforced_sharing_is_ok_and_others_give_the_reason() {
        assert_eq!(shared(DeviceSharing::Enforced).status, Diagnosis::Ok);
        for sharing in [DeviceSharing::Unenforced, DeviceSharing::Alone, DeviceSharing::OneUser] {
            let sharing = sharing("no MPS".into());
            let found = shared(sharing);
            assert_eq!((found.status, found.advice.as_deref()), (Diagnosis::Warning, Some("no MPS")));
        }
    }

    #[test]
    fn accessible_pipes_are_a_warning_and_a_link_in_their_place_is_an_error() {
        let state = tempfile::tempdir().unwrap();
        let mps = state.path().join("mps");
        assert_eq!(pipes(&h200(), state.path()).status, Diagnosis::Ok, "not there yet");
        fs::create_dir(&mps).unwrap();
        let status_of = |mode| {
            fs::set_permissions(&mps, fs::Permissions::from_mode(mode)).unwrap();
            pipes(&h200(), state.path()).status
        };
        assert_eq!(status_of(0o755), Diagnosis::Warning);
        assert_eq!(status_of(0o700), Diagnosis::Ok);
        fs::remove_dir(&mps).unwrap();
        std::os::unix::fs::symlink("/", &mps).unwrap();
        assert_eq!(pipes(&h200(), state.path()).status, Diagnosis::Error);
    }

    #[test]
    fn pipes_move_to_tmp_if_the_path_of_the_state_directory_is_too_long() {
        let found = pipes(&h200(), &PathBuf::from("/nowhere").join("a".repeat(80)));
        assert!(
            found.observed.contains("/tmp/cohabit-") && found.observed.contains("too long"),
            "{}",
            found.observed
        );
    }

    #[test]
    fn a_daemon_that_cohabit_did_not_start_is_a_warning() {
        let found = |daemon| foreign(Path::new("/tmp/nvidia-mps"), daemon);
        assert_eq!(found(Ok(None)).status, Diagnosis::Ok);
        let foreign = found(Ok(Some(42)));
        assert!(foreign.status == Diagnosis::Warning && foreign.observed.contains("pid 42"));
        assert_eq!(found(Err(ErrorKind::PermissionDenied.into())).status, Diagnosis::Warning);
    }

    #[test]
    fn a_missing_directory_has_no_shared_memory() {
        let found = shared_memory(Path::new("/no/such/folder"));
        assert!(found.status == Diagnosis::Warning && found.observed.contains("cannot access"));
    }
}
