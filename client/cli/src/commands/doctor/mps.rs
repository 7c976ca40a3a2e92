//! NVIDIA's MPS: whether each GPU can be shared within enforced limits, and what its daemons need of this
//! machine.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, absolute};

use cohabit_client::proto::{Bytes, Device, DeviceSharing};
use cohabit_gpu::mps::{MpsDirectory, MpsPrograms};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::statvfs;
use nix::unistd::geteuid;

use super::findings::Finding;
use super::gpus::name;

const SHARING: &str = "gpu sharing";
const PROGRAMS: &str = "mps programs";
const PIPES: &str = "mps pipes";
const MEMORY: &str = "mps shared memory";
const FILES: &str = "mps open files";
const FOREIGN: &str = "foreign mps";

/// As NVIDIA recommends for the server.
const ENOUGH_FILES: u64 = 16_384;
/// Clients keep their queues, and what they pin, there.
const MIN_SHARED_MEMORY: Bytes = Bytes(1 << 30);
/// Where MPS is when nobody says otherwise.
const DEFAULT_PIPE_DIRECTORY: &str = "/tmp/nvidia-mps";

pub(super) fn look(devices: &[Device], state: &Path) -> Vec<Finding> {
    let mut findings: Vec<Finding> = devices.iter().map(sharing).collect();
    findings.push(programs());
    findings.extend(devices.first().map(|device| pipes(device, state)));
    findings.push(shared_memory(Path::new("/dev/shm")));
    findings.push(open_files());
    findings.push(foreign(Path::new(DEFAULT_PIPE_DIRECTORY), Path::new("/proc")));
    findings
}

fn sharing(device: &Device) -> Finding {
    let gpu = name(device);
    match &device.condition.sharing {
        DeviceSharing::Enforced => {
            Finding::good(SHARING, format!("jobs can share {gpu} within limits that MPS enforces"))
        }
        DeviceSharing::Unenforced(why) => Finding::doubtful(
            SHARING,
            format!("jobs can share {gpu}, but nothing enforces their limits"),
            why,
        ),
        DeviceSharing::Alone(why) => {
            Finding::doubtful(SHARING, format!("each job gets {gpu} for itself"), why)
        }
    }
}

fn programs() -> Finding {
    match MpsPrograms::find(&env::var("PATH").unwrap_or_default()) {
        Ok(tools) => {
            let version = tools.version().map(|version| format!(", version {version}")).unwrap_or_default();
            Finding::good(PROGRAMS, format!("{}{version}", tools.control().display()))
        }
        Err(error) => Finding::doubtful(PROGRAMS, "not found", error.to_string()),
    }
}

/// Where a worker makes the pipe directories, whose names must be short, and whether they can be private.
fn pipes(device: &Device, state: &Path) -> Finding {
    let homes = match MpsDirectory::locate(state, &device.id) {
        Ok(home) => home.parent().unwrap_or(&home).to_owned(),
        Err(error) => return Finding::broken(PIPES, error.to_string(), "choose another folder with --state"),
    };
    let shown = homes.display();
    match fs::symlink_metadata(&homes) {
        Ok(found) if !found.is_dir() || found.uid() != geteuid().as_raw() => Finding::broken(
            PIPES,
            format!("{shown} is not a folder of this user"),
            "remove it, or choose another folder with --state",
        ),
        Ok(found) if found.mode() & 0o066 != 0 => Finding::doubtful(
            PIPES,
            format!("{shown} is open to other users"),
            format!("chmod 700 {shown}; a worker does so when it starts MPS"),
        ),
        Err(error) if error.kind() != ErrorKind::NotFound => Finding::broken(
            PIPES,
            format!("{shown} cannot be looked at ({error})"),
            "give yourself access, or choose another folder with --state",
        ),
        Ok(_) | Err(_) => {
            let is_near = absolute(state).is_ok_and(|state| homes.starts_with(state));
            let why = if is_near { "" } else { ", as the state folder's name is too long for sockets" };
            Finding::good(PIPES, format!("in {shown}, for this user alone{why}"))
        }
    }
}

fn shared_memory(folder: &Path) -> Finding {
    let shown = folder.display();
    let advice = "mount it larger; in a container, give it --shm-size=8g or --ipc=host";
    match statvfs(folder) {
        Ok(system) => {
            let size = Bytes(system.blocks() * system.fragment_size());
            match size >= MIN_SHARED_MEMORY {
                true => Finding::good(MEMORY, format!("{shown} has {size}")),
                false => Finding::doubtful(MEMORY, format!("{shown} has only {size}"), advice),
            }
        }
        Err(error) => Finding::doubtful(MEMORY, format!("{shown} cannot be looked at ({error})"), advice),
    }
}

fn open_files() -> Finding {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((_, hard)) if hard >= ENOUGH_FILES => Finding::good(FILES, format!("up to {hard} at once")),
        Ok((_, hard)) => Finding::doubtful(
            FILES,
            format!("only {hard} at once: an MPS server with many clients runs out of them"),
            format!("raise LimitNOFILE (systemd) or `ulimit -Hn` to {ENOUGH_FILES}"),
        ),
        Err(error) => {
            Finding::doubtful(FILES, format!("the limit is not known ({error})"), "look at `ulimit -Hn`")
        }
    }
}

/// A daemon that somebody else started. Files alone prove nothing: a daemon that was killed leaves them.
fn foreign(pipes: &Path, proc: &Path) -> Finding {
    let shown = pipes.display();
    let file = pipes.join("nvidia-cuda-mps-control.pid");
    let pid = match fs::read_to_string(&file) {
        Ok(text) => text.trim().to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Finding::good(FOREIGN, format!("no daemon of somebody else in {shown}"));
        }
        Err(error) => {
            let seen = format!("{} cannot be read ({error})", file.display());
            return Finding::doubtful(FOREIGN, seen, "look for nvidia-cuda-mps-control with `ps -ef`");
        }
    };
    let program = fs::read_to_string(proc.join(&pid).join("comm")).unwrap_or_default();
    match program.starts_with("nvidia-cuda-mps") {
        false => Finding::good(FOREIGN, format!("the daemon that was in {shown} is gone")),
        true => Finding::doubtful(
            FOREIGN,
            format!("a daemon that Cohabit did not start, pid {pid}, serves {shown}"),
            "stop it with `echo quit | nvidia-cuda-mps-control`: its clients take turns with Cohabit's",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use cohabit_client::proto::{DeviceId, DeviceKind};

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
    fn only_enforced_sharing_is_good_and_otherwise_it_is_said_why() {
        assert_eq!(shared(DeviceSharing::Enforced).judgement, Diagnosis::Good);
        for sharing in [DeviceSharing::Unenforced("no MPS".into()), DeviceSharing::Alone("no MPS".into())] {
            let found = shared(sharing);
            assert_eq!((found.judgement, found.advice.as_deref()), (Diagnosis::Doubtful, Some("no MPS")));
        }
    }

    #[test]
    fn pipes_that_others_can_enter_are_doubtful_and_a_link_in_their_place_is_broken() {
        let state = tempfile::tempdir().unwrap();
        let mps = state.path().join("mps");
        assert_eq!(pipes(&h200(), state.path()).judgement, Diagnosis::Good, "not there yet");
        fs::create_dir(&mps).unwrap();
        let judged = |mode| {
            fs::set_permissions(&mps, fs::Permissions::from_mode(mode)).unwrap();
            pipes(&h200(), state.path()).judgement
        };
        assert_eq!(judged(0o755), Diagnosis::Doubtful);
        assert_eq!(judged(0o700), Diagnosis::Good);
        fs::remove_dir(&mps).unwrap();
        std::os::unix::fs::symlink("/", &mps).unwrap();
        assert_eq!(pipes(&h200(), state.path()).judgement, Diagnosis::Broken);
    }

    #[test]
    fn a_state_folder_with_a_long_name_is_no_place_for_pipes() {
        let found = pipes(&h200(), &PathBuf::from("/nowhere").join("a".repeat(80)));
        assert!(found.seen.contains("/tmp/cohabit-") && found.seen.contains("too long"), "{}", found.seen);
    }

    #[test]
    fn a_foreign_daemon_counts_only_while_it_lives() {
        let (pipes, proc) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let judged = || foreign(pipes.path(), proc.path()).judgement;
        assert_eq!(judged(), Diagnosis::Good);
        fs::write(pipes.path().join("nvidia-cuda-mps-control.pid"), "42\n").unwrap();
        assert_eq!(judged(), Diagnosis::Good, "its number is nobody's");
        fs::create_dir(proc.path().join("42")).unwrap();
        fs::write(proc.path().join("42/comm"), "bash\n").unwrap();
        assert_eq!(judged(), Diagnosis::Good, "its number is another's");
        fs::write(proc.path().join("42/comm"), "nvidia-cuda-mps\n").unwrap();
        assert_eq!(judged(), Diagnosis::Doubtful);
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_shared_memory() {
        let found = shared_memory(Path::new("/no/such/folder"));
        assert!(found.judgement == Diagnosis::Doubtful && found.seen.contains("cannot be looked at"));
    }
}
