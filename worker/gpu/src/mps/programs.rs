//! NVIDIA's programs for MPS, and whether a GPU can be shared with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cohabit_types::{ComputeMode, DeviceSharing, GpuProperties, Mig};
use nix::unistd::{AccessFlags, access, geteuid};

use super::deadline::Deadline;
use super::error::MpsError;

const CONTROL: &str = "nvidia-cuda-mps-control";
const SERVER: &str = "nvidia-cuda-mps-server";

/// Variables of our own environment that the programs get besides `PATH`: they may lead to the driver's
/// libraries.
const INHERITED_VARIABLES: [&str; 2] = ["HOME", "LD_LIBRARY_PATH"];

/// The first architecture whose clients have separate address spaces and limits: Volta.
const MIN_COMPUTE_CAPABILITY: (u32, u32) = (7, 0);

/// NVIDIA's control program and server.
#[derive(Debug, Clone)]
pub struct MpsPrograms {
    pub(super) control: PathBuf,
    /// The environment of the programs; its `PATH` includes the directory of the server.
    pub(super) environment: BTreeMap<String, String>,
}

impl MpsPrograms {
    /// Finds the programs in this search path, in the form of `PATH`. The server may also be in the directory
    /// of the control program, or in the `sbin` directory beside that one, which is not in every user's
    /// search path.
    ///
    /// # Errors
    /// Which program is missing, and what to install.
    pub fn find(search_path: &str) -> Result<MpsPrograms, MpsError> {
        let folders = || search_path.split(':').map(PathBuf::from).filter(|folder| folder.is_absolute());
        let control =
            folders().find_map(|folder| program(&folder, CONTROL)).ok_or_else(|| missing(CONTROL))?;
        let beside = control.parent().unwrap_or(Path::new("/"));
        let near = [beside.to_owned(), beside.with_file_name("sbin")];
        let server = folders().chain(near).find(|folder| program(folder, SERVER).is_some());
        let server = server.ok_or_else(|| missing(SERVER))?;
        let kept = INHERITED_VARIABLES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        let mut environment: BTreeMap<String, String> = kept.collect();
        // The daemon looks the server up in PATH.
        environment.insert("PATH".into(), format!("{search_path}:{}", server.display()));
        Ok(MpsPrograms { control, environment })
    }

    /// The control program.
    #[must_use]
    pub fn control(&self) -> &Path {
        &self.control
    }

    /// The version of the control program, such as `13000`. Programs older than CUDA 13 do not tell it.
    #[must_use]
    pub fn version(&self) -> Option<u32> {
        let text = self.output_of("-v")?;
        text.split("ersion:").nth(1)?.split_whitespace().next()?.parse().ok()
    }

    /// Whose processes a server of these programs serves. Runs the control program, because only its list of
    /// options tells: drivers up to 550 have no option for several users, and refuse to start with it.
    #[must_use]
    pub fn users(&self) -> ServedUsers {
        if !geteuid().is_root() {
            return ServedUsers::Own;
        }
        let options = self.output_of("-h").unwrap_or_default();
        if options.contains("multiuser-server") { ServedUsers::All } else { ServedUsers::OneAtATime }
    }

    /// What the control program prints for this option.
    fn output_of(&self, option: &str) -> Option<String> {
        let mut command = Command::new(&self.control);
        command.arg(option).env_clear().envs(&self.environment).current_dir("/");
        // A program that does not know the option connects to a daemon: let it find none.
        command.env("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent").stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let ended = Deadline::after(Duration::from_secs(3)).wait(|| child.try_wait().transpose());
        if ended.is_none() {
            let _ = child.kill();
        }
        let printed = child.wait_with_output().ok()?;
        Some(String::from_utf8_lossy(&printed.stdout).into_owned())
    }
}

/// Whose processes an MPS server serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedUsers {
    /// Those of this process's account, which is not root.
    Own,
    /// Those of all users together.
    All,
    /// Those of one user at a time: others wait until the last of them has ended.
    OneAtATime,
}

fn program(folder: &Path, name: &str) -> Option<PathBuf> {
    let path = folder.join(name);
    (path.is_file() && access(&path, AccessFlags::X_OK).is_ok()).then_some(path)
}

fn missing(program: &str) -> MpsError {
    MpsError(format!(
        "'{program}' is not in the search path: install the driver's MPS programs (Debian: nvidia-cuda-mps, Ubuntu: \
         nvidia-compute-utils, elsewhere part of the driver)"
    ))
}

/// The operating system, as far as MPS is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Platform {
    Linux,
    /// The Windows Subsystem for Linux.
    Wsl,
    Other,
}

/// Whether a GPU can be shared under MPS on this host, as far as can be told without trying.
pub(crate) fn check_sharing(gpu: &GpuProperties, users: Result<ServedUsers, &MpsError>) -> DeviceSharing {
    assess_sharing(gpu, users, platform())
}

fn platform() -> Platform {
    let kernel = std::fs::read_to_string("/proc/version").unwrap_or_default().to_lowercase();
    match () {
        () if !cfg!(target_os = "linux") => Platform::Other,
        () if kernel.contains("microsoft") || Path::new("/dev/dxg").exists() => Platform::Wsl,
        () => Platform::Linux,
    }
}

fn assess_sharing(
    gpu: &GpuProperties,
    users: Result<ServedUsers, &MpsError>,
    platform: Platform,
) -> DeviceSharing {
    let alone = |why: &str| DeviceSharing::Alone(why.to_owned());
    if gpu.mig == Mig::On {
        return alone(
            "it is partitioned by MIG, which Cohabit does not support: turn MIG off with 'nvidia-smi -mig 0'",
        );
    }
    let users = match mps_obstacle(gpu, platform) {
        None => users.map_err(ToString::to_string),
        Some(why) => Err(why),
    };
    match (users, gpu.compute_mode) {
        (Ok(ServedUsers::Own | ServedUsers::All), _) => DeviceSharing::Enforced,
        (Ok(ServedUsers::OneAtATime), _) => DeviceSharing::OneUser(
            "the MPS of this driver serves one user at a time: a driver of version 570 or later serves several"
                .to_owned(),
        ),
        (Err(why), ComputeMode::ExclusiveProcess) => alone(&format!(
            "its compute mode is Exclusive_Process, and MPS cannot be used ({why}): set another with 'nvidia-smi -c \
             DEFAULT'"
        )),
        (Err(why), ComputeMode::Default | ComputeMode::Prohibited) => DeviceSharing::Unenforced(why),
    }
}

/// Why MPS cannot be used on this GPU and platform, if it cannot.
fn mps_obstacle(gpu: &GpuProperties, platform: Platform) -> Option<String> {
    match platform {
        Platform::Linux => {}
        Platform::Wsl => return Some("MPS is not known to work in the Windows Subsystem for Linux".into()),
        Platform::Other => return Some("MPS needs Linux".into()),
    }
    match gpu.compute_capability {
        Some(capability) if capability >= MIN_COMPUTE_CAPABILITY => None,
        Some((major, minor)) => Some(format!(
            "its compute capability is {major}.{minor}; memory limits under MPS need 7.0 (Volta) or later"
        )),
        None => {
            Some("the driver does not report its compute capability; MPS needs 7.0 (Volta) or later".into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::{TempDir, tempdir};

    use super::*;

    fn folder_with(programs: &[&str]) -> TempDir {
        let folder = tempdir().unwrap();
        for name in programs {
            symlink("/bin/true", folder.path().join(name)).unwrap();
        }
        folder
    }

    fn tools() -> MpsPrograms {
        MpsPrograms { control: "/bin/true".into(), environment: BTreeMap::new() }
    }

    fn hopper() -> GpuProperties {
        GpuProperties { compute_capability: Some((9, 0)), ..GpuProperties::default() }
    }

    fn reason(sharing: &DeviceSharing) -> &str {
        match sharing {
            DeviceSharing::Enforced => "enforced",
            DeviceSharing::Unenforced(why) | DeviceSharing::Alone(why) | DeviceSharing::OneUser(why) => why,
        }
    }

    #[test]
    fn a_missing_program_is_named() {
        let [none, half] = [folder_with(&[]), folder_with(&[CONTROL])];
        let found = |folder: &TempDir| MpsPrograms::find(folder.path().to_str().unwrap()).unwrap_err().0;
        assert!(found(&none).starts_with("'nvidia-cuda-mps-control' is not"));
        assert!(found(&half).starts_with("'nvidia-cuda-mps-server' is not"));
    }

    #[test]
    fn the_server_is_found_in_the_sbin_directory_next_to_the_control_program() {
        let root = tempdir().unwrap();
        for (folder, name) in [("bin", CONTROL), ("sbin", SERVER)] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
            symlink("/bin/true", root.path().join(folder).join(name)).unwrap();
        }
        let bin = root.path().join("bin");
        let tools = MpsPrograms::find(&format!("/nonexistent::{}", bin.display())).unwrap();
        assert_eq!(tools.control(), bin.join(CONTROL));
        assert!(tools.environment["PATH"].ends_with(&format!(":{}", root.path().join("sbin").display())));
    }

    #[test]
    fn a_program_that_prints_no_version_has_none() {
        assert_eq!(tools().version(), None);
    }

    #[test]
    fn a_current_gpu_with_all_programs_can_be_shared() {
        assert_eq!(assess_sharing(&hopper(), Ok(ServedUsers::All), Platform::Linux), DeviceSharing::Enforced);
        let exclusive = GpuProperties { compute_mode: ComputeMode::ExclusiveProcess, ..hopper() };
        assert_eq!(
            assess_sharing(&exclusive, Ok(ServedUsers::All), Platform::Linux),
            DeviceSharing::Enforced
        );
    }

    #[test]
    fn root_shares_a_gpu_of_an_old_driver_among_one_user_at_a_time() {
        let sharing = |users| assess_sharing(&hopper(), Ok(users), Platform::Linux);
        assert!(reason(&sharing(ServedUsers::OneAtATime)).contains("one user at a time"));
        assert_eq!(sharing(ServedUsers::Own), DeviceSharing::Enforced);
    }

    #[test]
    fn without_mps_a_gpu_can_be_shared_without_enforcement() {
        let missing = MpsError("it is missing".into());
        let pascal = GpuProperties { compute_capability: Some((6, 1)), ..hopper() };
        let unknown = GpuProperties { compute_capability: None, ..hopper() };
        for (sharing, why) in [
            (assess_sharing(&hopper(), Err(&missing), Platform::Linux), "it is missing"),
            (assess_sharing(&hopper(), Ok(ServedUsers::All), Platform::Wsl), "Windows"),
            (assess_sharing(&hopper(), Ok(ServedUsers::All), Platform::Other), "needs Linux"),
            (assess_sharing(&pascal, Ok(ServedUsers::All), Platform::Linux), "is 6.1"),
            (assess_sharing(&unknown, Ok(ServedUsers::All), Platform::Linux), "does not report"),
        ] {
            assert!(matches!(sharing, DeviceSharing::Unenforced(_)), "{sharing}");
            assert!(reason(&sharing).contains(why), "{sharing}");
        }
    }

    #[test]
    fn a_gpu_for_one_process_or_with_mig_is_not_shared() {
        let missing = MpsError("it is missing".into());
        let exclusive = GpuProperties { compute_mode: ComputeMode::ExclusiveProcess, ..hopper() };
        let divided = GpuProperties { mig: Mig::On, ..hopper() };
        for (sharing, why) in [
            (assess_sharing(&exclusive, Err(&missing), Platform::Linux), "it is missing"),
            (assess_sharing(&divided, Ok(ServedUsers::All), Platform::Linux), "nvidia-smi -mig 0"),
        ] {
            assert!(matches!(sharing, DeviceSharing::Alone(_)), "{sharing}");
            assert!(reason(&sharing).contains(why), "{sharing}");
        }
    }
}
