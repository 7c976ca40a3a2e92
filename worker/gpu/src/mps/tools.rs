//! NVIDIA's programs for MPS, and whether a GPU can be shared with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cohabit_types::{ComputeMode, DeviceSharing, GpuProperties, Mig};
use nix::unistd::{AccessFlags, access};

use super::patience::Deadline;
use super::{MpsError, MpsPrograms};

const CONTROL: &str = "nvidia-cuda-mps-control";
const SERVER: &str = "nvidia-cuda-mps-server";

/// What of our own environment the programs get beside the search path: where the driver's libraries may be.
const INHERITED_VARIABLES: [&str; 2] = ["HOME", "LD_LIBRARY_PATH"];

/// The first architecture whose clients have memory of their own, and limits: Volta.
const MIN_COMPUTE_CAPABILITY: (u32, u32) = (7, 0);

impl MpsPrograms {
    /// The programs in this search path, in the form of `PATH`. The server may also lie beside the control
    /// program, or in the `sbin` folder next to its folder, which is not in everybody's search path.
    ///
    /// # Errors
    /// What is missing, and what to do.
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
        // The daemon looks for the server by its name alone.
        environment.insert("PATH".into(), format!("{search_path}:{}", server.display()));
        Ok(MpsPrograms { control, environment })
    }

    /// The control program.
    #[must_use]
    pub fn control(&self) -> &Path {
        &self.control
    }

    /// The version of the control program, where it tells: `13000`. Programs older than CUDA 13 do not.
    #[must_use]
    pub fn version(&self) -> Option<u32> {
        let mut command = Command::new(&self.control);
        command.arg("-v").env_clear().envs(&self.environment).current_dir("/");
        // An older program would talk to a daemon instead: it shall find none, and have nothing to say.
        command.env("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent").stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let ended = Deadline::after(Duration::from_secs(3)).wait(|| child.try_wait().transpose());
        if ended.is_none() {
            let _ = child.kill();
        }
        let said = child.wait_with_output().ok()?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        text.split("ersion:").nth(1)?.split_whitespace().next()?.parse().ok()
    }
}

fn program(folder: &Path, name: &str) -> Option<PathBuf> {
    let path = folder.join(name);
    (path.is_file() && access(&path, AccessFlags::X_OK).is_ok()).then_some(path)
}

fn missing(program: &str) -> MpsError {
    MpsError(format!(
        "'{program}' is not in the search path: install the MPS programs of the driver (Debian: nvidia-cuda-mps, Ubuntu: nvidia-compute-utils, others: part of the driver)"
    ))
}

/// On which system we are, as far as MPS is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Platform {
    Linux,
    /// Linux inside Windows.
    Wsl,
    Other,
}

/// Whether a GPU can be shared under MPS on this machine, as far as can be said without trying.
#[must_use]
pub fn check_sharing(gpu: &GpuProperties, tools: Result<&MpsPrograms, &MpsError>) -> DeviceSharing {
    assess_sharing(gpu, tools, system())
}

fn system() -> Platform {
    let kernel = std::fs::read_to_string("/proc/version").unwrap_or_default().to_lowercase();
    match () {
        () if !cfg!(target_os = "linux") => Platform::Other,
        () if kernel.contains("microsoft") || Path::new("/dev/dxg").exists() => Platform::Wsl,
        () => Platform::Linux,
    }
}

fn assess_sharing(
    gpu: &GpuProperties,
    tools: Result<&MpsPrograms, &MpsError>,
    system: Platform,
) -> DeviceSharing {
    let alone = |why: &str| DeviceSharing::Alone(why.to_owned());
    if gpu.mig == Mig::On {
        return alone(
            "it is divided by MIG, which is not supported: switch MIG off with 'nvidia-smi -mig 0'",
        );
    }
    match (mps_obstacle(gpu, tools, system), gpu.compute_mode) {
        (None, _) => DeviceSharing::Enforced,
        (Some(why), ComputeMode::ExclusiveProcess) => alone(&format!(
            "its compute mode is Exclusive_Process, and MPS cannot be used ({why}): set another with 'nvidia-smi -c DEFAULT'"
        )),
        (Some(why), ComputeMode::Default | ComputeMode::Prohibited) => DeviceSharing::Unenforced(why),
    }
}

/// Why MPS cannot be used, if so.
fn mps_obstacle(
    gpu: &GpuProperties,
    tools: Result<&MpsPrograms, &MpsError>,
    system: Platform,
) -> Option<String> {
    match system {
        Platform::Linux => {}
        Platform::Wsl => return Some("MPS is not known to work in the Windows Subsystem for Linux".into()),
        Platform::Other => return Some("MPS needs Linux".into()),
    }
    match gpu.compute_capability {
        Some(capability) if capability >= MIN_COMPUTE_CAPABILITY => tools.err().map(ToString::to_string),
        Some((major, minor)) => Some(format!(
            "its compute capability is {major}.{minor}; limits under MPS need 7.0, Volta or later"
        )),
        None => Some("the driver does not tell its compute capability; MPS needs 7.0, Volta or later".into()),
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

    fn said(sharing: &DeviceSharing) -> &str {
        match sharing {
            DeviceSharing::Enforced => "enforced",
            DeviceSharing::Unenforced(why) | DeviceSharing::Alone(why) => why,
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
    fn the_server_is_found_in_the_sbin_folder_next_to_the_control_program() {
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
    fn a_program_that_tells_no_version_has_none() {
        assert_eq!(tools().version(), None);
    }

    #[test]
    fn a_gpu_of_today_with_all_programs_can_be_shared() {
        assert_eq!(assess_sharing(&hopper(), Ok(&tools()), Platform::Linux), DeviceSharing::Enforced);
        let exclusive = GpuProperties { compute_mode: ComputeMode::ExclusiveProcess, ..hopper() };
        assert_eq!(assess_sharing(&exclusive, Ok(&tools()), Platform::Linux), DeviceSharing::Enforced);
    }

    #[test]
    fn without_mps_ranks_may_take_turns() {
        let missing = MpsError("it is missing".into());
        let pascal = GpuProperties { compute_capability: Some((6, 1)), ..hopper() };
        let unknown = GpuProperties { compute_capability: None, ..hopper() };
        for (sharing, why) in [
            (assess_sharing(&hopper(), Err(&missing), Platform::Linux), "it is missing"),
            (assess_sharing(&hopper(), Ok(&tools()), Platform::Wsl), "Windows"),
            (assess_sharing(&hopper(), Ok(&tools()), Platform::Other), "needs Linux"),
            (assess_sharing(&pascal, Ok(&tools()), Platform::Linux), "is 6.1"),
            (assess_sharing(&unknown, Ok(&tools()), Platform::Linux), "does not tell"),
        ] {
            assert!(matches!(sharing, DeviceSharing::Unenforced(_)), "{sharing}");
            assert!(said(&sharing).contains(why), "{sharing}");
        }
    }

    #[test]
    fn a_gpu_that_serves_one_process_or_is_divided_is_not_shared() {
        let missing = MpsError("it is missing".into());
        let exclusive = GpuProperties { compute_mode: ComputeMode::ExclusiveProcess, ..hopper() };
        let divided = GpuProperties { mig: Mig::On, ..hopper() };
        for (sharing, why) in [
            (assess_sharing(&exclusive, Err(&missing), Platform::Linux), "it is missing"),
            (assess_sharing(&divided, Ok(&tools()), Platform::Linux), "nvidia-smi -mig 0"),
        ] {
            assert!(matches!(sharing, DeviceSharing::Alone(_)), "{sharing}");
            assert!(said(&sharing).contains(why), "{sharing}");
        }
    }
}
