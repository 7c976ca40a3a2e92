//! GPUs: what the driver says of itself and of each, by its management library.

use std::path::{Path, PathBuf};

use cohabit_client::proto::{Device, GpuPeer, GpuProperties, Health};
use cohabit_gpu::{GpusUnavailable, NvmlSession};

use super::findings::Finding;
use super::{device_files, gpu_processes, mps, probe};
use crate::arguments::DoctorArguments;
use crate::commands::worker::start::WORKER_FOLDER;
use crate::config::{SettingKey, Settings};

const DRIVER: &str = "gpu driver";
const GPU: &str = "gpu";

/// How to look at GPUs.
#[derive(Debug)]
pub(super) struct GpuCheckOptions {
    /// NVIDIA's library, if not the usual one.
    library: Option<PathBuf>,
    /// The state folder of a worker here.
    state: PathBuf,
    /// Whether to try what can only be known by trying.
    trial: ProbeMode,
}

/// Whether MPS is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeMode {
    /// Its daemon is started on each GPU that is idle, and stopped again.
    Try,
    /// Nothing is started.
    Skip,
}

impl GpuCheckOptions {
    /// As a worker on this machine would, by these flags and settings.
    pub(super) fn new(arguments: &DoctorArguments, settings: &Settings, state: &Path) -> GpuCheckOptions {
        GpuCheckOptions {
            library: arguments.nvml_library.clone().or_else(|| settings.path(SettingKey::NvmlLibrary)),
            state: state.join(WORKER_FOLDER),
            trial: if arguments.probe { ProbeMode::Try } else { ProbeMode::Skip },
        }
    }
}

pub(super) fn look(how: &GpuCheckOptions) -> Vec<Finding> {
    match NvmlSession::open(how.library.as_deref()) {
        Ok(gpus) => look_with(&gpus, how),
        Err(none) => {
            let mut findings = vec![without_gpus(&none, how.library.as_deref())];
            findings.extend((how.trial == ProbeMode::Try).then(probe::without_gpus));
            findings
        }
    }
}

/// No GPU is no trouble for a worker, unless there should be one.
fn without_gpus(none: &GpusUnavailable, named: Option<&Path>) -> Finding {
    let seen = format!("{}; a worker offers a host slot here", none.problem());
    if let GpusUnavailable::NoLibrary { .. } = none {
        return match named {
            None => Finding::doubtful(DRIVER, seen, none.advice()),
            Some(_) => Finding::broken(DRIVER, seen, "correct --nvml-library, or leave it away"),
        };
    }
    Finding::broken(DRIVER, seen, none.advice())
}

fn look_with(gpus: &NvmlSession, how: &GpuCheckOptions) -> Vec<Finding> {
    let (mut devices, mut silent) = (Vec::new(), Vec::new());
    for answer in gpus.devices() {
        match answer {
            Ok(device) => devices.push(device),
            Err(error) => silent.push(Finding::broken(
                GPU,
                error.to_string(),
                "a worker does not offer it as long as it does not answer",
            )),
        }
    }
    let mut findings: Vec<Finding> = devices.iter().find_map(driver).into_iter().collect();
    findings.extend(devices.iter().map(gpu));
    findings.extend(silent);
    findings.extend(device_files::look());
    findings.extend(devices.iter().map(|device| gpu_processes::look(gpus, device)));
    findings.extend(mps::look(&devices, &how.state));
    if how.trial == ProbeMode::Try {
        findings.extend(devices.iter().map(|device| probe::probe(gpus, device)));
    }
    findings
}

/// What every GPU says of the driver, from any of them.
fn driver(device: &Device) -> Option<Finding> {
    let facts = device.gpu.as_ref()?;
    let cuda = match facts.cuda {
        Some((major, minor)) => format!("CUDA up to {major}.{minor}"),
        None => "it does not say for which CUDA".to_owned(),
    };
    let version = match facts.driver.as_str() {
        "" => "unknown",
        version => version,
    };
    Some(Finding::good(DRIVER, format!("version {version}, {cuda}")))
}

fn gpu(device: &Device) -> Finding {
    let memory = match device.memory {
        Some(memory) => format!("{memory} of memory"),
        None => "no memory of its own".to_owned(),
    };
    let facts = device.gpu.as_ref().map(details).unwrap_or_default();
    let seen = format!("{}, {memory}{facts}", name(device));
    match &device.condition.health {
        Health::Well | Health::Recovering(_) => Finding::good(GPU, seen),
        Health::Fenced(why) => Finding::broken(GPU, seen, why),
    }
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

/// A GPU, for people: two of a machine are often of one model.
pub(super) fn name(device: &Device) -> String {
    format!("{} {}", device.model, device.id)
}

#[cfg(test)]
mod tests {
    use cohabit_client::proto::{Bytes, DeviceId, DeviceKind, PeerPath};

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
    fn a_gpu_is_told_with_all_that_matters_for_sharing() {
        let seen = "NVIDIA H200 GPU-a, 141 GiB of memory, 132 multiprocessors, compute capability 9.0, compute mode \
                    default, MIG off, at 00000000:3B:00.0, GPU-b by 18 NVLinks";
        assert_eq!(gpu(&h200()), Finding::good(GPU, seen));
        assert_eq!(driver(&h200()).unwrap().seen, "version 580.159.03, CUDA up to 13.0");
    }

    #[test]
    fn a_library_that_is_not_there_is_doubtful_unless_it_was_named() {
        let look = |library: Option<&Path>| {
            let none = GpusUnavailable::NoLibrary { why: "libx.so: no such file".into() };
            without_gpus(&none, library)
        };
        assert_eq!(look(None).judgement, Diagnosis::Doubtful);
        let named = look(Some(Path::new("libx.so")));
        assert_eq!(named.judgement, Diagnosis::Broken);
        assert!(named.seen.contains("libx.so") && named.seen.contains("host slot"), "{}", named.seen);
    }

    #[test]
    fn a_driver_that_should_answer_and_does_not_is_broken() {
        let found = without_gpus(&GpusUnavailable::VersionMismatch, None);
        assert_eq!(found.judgement, Diagnosis::Broken);
        assert!(found.advice.unwrap().contains("reload the driver"));
    }
}
