//! GPUs: the driver and each device, as NVML reports them.

use std::path::{Path, PathBuf};

use cohabit_client::types::{Device, GpuPeer, GpuProperties, Health};
use cohabit_gpu::{GpusUnavailable, NvmlSession, OtherGpu, other_gpus};

use super::device_name::device_name;
use super::findings::Finding;
use super::{device_files, gpu_processes, mps, probe};
use crate::arguments::DoctorArguments;
use crate::config::{SettingKey, Settings};
use crate::worker_directory::WORKER_FOLDER;

const DRIVER: &str = "gpu driver";
const GPU: &str = "gpu";
const PERSISTENCE: &str = "gpu persistence";
const OTHERS: &str = "other gpus";

/// Options of the checks of GPUs.
#[derive(Debug)]
pub(super) struct GpuCheckOptions {
    /// Path of NVML, if not in the standard place.
    library: Option<PathBuf>,
    /// The state directory of a worker on this machine.
    state: PathBuf,
    /// Whether to test MPS.
    probe: ProbeMode,
}

/// Whether MPS is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeMode {
    /// Start its daemon on each idle GPU and stop it again.
    Try,
    /// Start nothing.
    Skip,
}

impl GpuCheckOptions {
    /// The options that a worker on this machine would use with these flags and settings.
    pub(super) fn new(arguments: &DoctorArguments, settings: &Settings, state: &Path) -> GpuCheckOptions {
        GpuCheckOptions {
            library: arguments.nvml_library.clone().or_else(|| settings.path(SettingKey::NvmlLibrary)),
            state: state.join(WORKER_FOLDER),
            probe: if arguments.probe { ProbeMode::Try } else { ProbeMode::Skip },
        }
    }
}

pub(super) fn check(options: &GpuCheckOptions) -> Vec<Finding> {
    match NvmlSession::open(options.library.as_deref()) {
        Ok(gpus) => check_gpus(&gpus, options),
        Err(none) => {
            let mut findings = vec![without_gpus(&none, options.library.as_deref())];
            findings.extend(others());
            findings.extend((options.probe == ProbeMode::Try).then(probe::without_gpus));
            findings
        }
    }
}

/// A machine without GPUs is fine for a worker, unless GPUs are expected.
fn without_gpus(none: &GpusUnavailable, named: Option<&Path>) -> Finding {
    let observed = format!("{}; a worker on this machine offers a host slot", none.problem());
    if let GpusUnavailable::NoLibrary { .. } = none {
        return match named {
            None => Finding::warning(DRIVER, observed, none.advice()),
            Some(_) => Finding::error(DRIVER, observed, "correct --nvml-library, or omit it"),
        };
    }
    Finding::error(DRIVER, observed, none.advice())
}

fn check_gpus(gpus: &NvmlSession, options: &GpuCheckOptions) -> Vec<Finding> {
    let (mut devices, mut silent) = (Vec::new(), Vec::new());
    for answer in gpus.devices() {
        match answer {
            Ok(device) => devices.push(device),
            Err(error) => silent.push(Finding::error(
                GPU,
                error.to_string(),
                "a worker does not offer the GPU until it answers",
            )),
        }
    }
    let mut findings: Vec<Finding> = devices.iter().find_map(driver).into_iter().collect();
    findings.extend(devices.iter().map(gpu));
    findings.extend(devices.iter().map(|device| persistence(device, gpus.persistence_mode(&device.id))));
    findings.extend(others());
    findings.extend(silent);
    findings.extend(device_files::check());
    findings.extend(devices.iter().map(|device| gpu_processes::check(gpus, device)));
    findings.extend(mps::check(&devices, &options.state));
    if options.probe == ProbeMode::Try {
        findings.extend(devices.iter().map(|device| probe::probe(gpus, device)));
    }
    findings
}

/// The driver, as reported by any GPU.
fn driver(device: &Device) -> Option<Finding> {
    let facts = device.gpu.as_ref()?;
    let cuda = match facts.cuda {
        Some((major, minor)) => format!("CUDA up to {major}.{minor}"),
        None => "CUDA version unknown".to_owned(),
    };
    let version = match facts.driver.as_str() {
        "" => "unknown",
        version => version,
    };
    Some(Finding::ok(DRIVER, format!("version {version}, {cuda}")))
}

fn gpu(device: &Device) -> Finding {
    let memory = match device.memory {
        Some(memory) => format!("{memory} of memory"),
        None => "no memory reported".to_owned(),
    };
    let facts = device.gpu.as_ref().map(details).unwrap_or_default();
    let observed = format!("{}, {memory}{facts}", device_name(device));
    match &device.condition.health {
        Health::Well | Health::Recovering(_) => Finding::ok(GPU, observed),
        Health::Fenced(why) => Finding::error(GPU, observed, why),
    }
}

/// Without persistence mode the driver shuts a GPU down when its last program ends.
fn persistence(device: &Device, mode: Option<bool>) -> Finding {
    let gpu = device_name(device);
    match mode {
        Some(true) => Finding::ok(PERSISTENCE, format!("on for {gpu}")),
        Some(false) => Finding::warning(
            PERSISTENCE,
            format!("off for {gpu}: the first program on it, and so the start of MPS, may take a minute"),
            "start nvidia-persistenced at boot, or run `nvidia-smi -pm 1` as root after each boot",
        ),
        None => Finding::ok(PERSISTENCE, format!("the driver does not report it for {gpu}")),
    }
}

/// GPUs that no worker offers.
fn others() -> Option<Finding> {
    let others: Vec<String> = other_gpus().iter().map(OtherGpu::to_string).collect();
    (!others.is_empty()).then(|| {
        Finding::warning(
            OTHERS,
            format!("not used: {}", others.join(", ")),
            "Cohabit runs jobs on NVIDIA GPUs only; a worker can offer host slots with --devices host:1",
        )
    })
}

fn details(facts: &GpuProperties) -> String {
    let multiprocessors = facts.multiprocessors.map(|count| format!(", {count} multiprocessors"));
    let capability =
        facts.compute_capability.map(|(major, minor)| format!(", compute capability {major}.{minor}"));
    let modes = format!(", compute mode {}, MIG {}", facts.compute_mode, facts.mig);
    let address = format!(", at {}", facts.pci_address);
    let peers = facts.peers.iter().map(peer).collect::<String>();
    [multiprocessors.unwrap_or_default(), capability.unwrap_or_default(), modes, address, peers].concat()
}

fn peer(peer: &GpuPeer) -> String {
    format!(", {} by {}", peer.device, peer.path)
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::{Bytes, DeviceId, DeviceKind, PeerPath};

    use super::super::findings::Diagnosis;
    use super::*;

    fn h200() -> Device {
        let peer = GpuPeer { device: DeviceId("GPU-b".into()), path: PeerPath::NvLink(18) };
        let facts = GpuProperties {
            multiprocessors: Some(132),
            compute_capability: Some((9, 0)),
            pci_address: "00000000:3B:00.0".into(),
            driver: "580.159.03".into(),
            cuda: Some((13, 0)),
            peers: vec![peer],
            ..GpuProperties::default()
        };
        let memory = Some(Bytes(141 << 30));
        let device = Device::new(DeviceId("GPU-a".into()), DeviceKind::Gpu, "NVIDIA H200", memory);
        Device { gpu: Some(facts), ..device }
    }

    #[test]
    fn a_gpu_is_described_with_everything_that_affects_sharing() {
        let observed = "NVIDIA H200 GPU-a, 141 GiB of memory, 132 multiprocessors, compute capability 9.0, compute mode \
                    default, MIG off, at 00000000:3B:00.0, GPU-b by 18 NVLinks";
        assert_eq!(gpu(&h200()), Finding::ok(GPU, observed));
        assert_eq!(driver(&h200()).unwrap().observed, "version 580.159.03, CUDA up to 13.0");
    }

    #[test]
    fn persistence_mode_is_a_warning_only_where_it_is_off() {
        let status_of = |mode| persistence(&h200(), mode).status;
        assert_eq!(
            [Some(true), None, Some(false)].map(status_of),
            [Diagnosis::Ok, Diagnosis::Ok, Diagnosis::Warning]
        );
    }

    #[test]
    fn a_missing_library_is_a_warning_unless_it_was_named() {
        let look = |library: Option<&Path>| {
            let none = GpusUnavailable::NoLibrary { why: "libx.so: no such file".into() };
            without_gpus(&none, library)
        };
        assert_eq!(look(None).status, Diagnosis::Warning);
        let named = look(Some(Path::new("libx.so")));
        assert_eq!(named.status, Diagnosis::Error);
        assert!(
            named.observed.contains("libx.so") && named.observed.contains("host slot"),
            "{}",
            named.observed
        );
    }

    #[test]
    fn a_driver_that_does_not_answer_is_an_error() {
        let found = without_gpus(&GpusUnavailable::VersionMismatch, None);
        assert_eq!(found.status, Diagnosis::Error);
        assert!(found.advice.unwrap().contains("reload the driver"));
    }
}
