//! The devices that a worker offers: NVIDIA GPUs, host slots, or simulated GPUs for trying things out.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use cohabit_gpu::{GpuDeviceFiles, GpuError, GpusUnavailable, NvmlSession, other_gpus};
use cohabit_types::{Bytes, Device, DeviceId, DeviceKind, DeviceSharing};

/// The devices to offer: `auto`, `host:4`, `sim:2xH200-141G`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceSpec {
    /// The GPUs of the host; if it has none, one host slot.
    Auto,
    /// This many host slots.
    Host(u32),
    /// Simulated GPUs: jobs really run, but GPU limits are not enforced.
    Simulated {
        /// How many.
        count: u32,
        /// Their model.
        model: String,
        /// The memory of each.
        memory: Bytes,
    },
}

/// The devices that were found, and the files through which programs reach them.
#[derive(Debug, Clone)]
pub(crate) struct FoundDevices {
    pub(crate) devices: Vec<Device>,
    /// Whether every GPU of the host answers.
    pub(crate) do_all_answer: bool,
    /// Or why the driver does not tell them.
    pub(crate) gpu_files: Result<GpuDeviceFiles, String>,
}

/// Devices that are no GPUs of this host have no files.
impl FromIterator<Device> for FoundDevices {
    fn from_iter<Devices: IntoIterator<Item = Device>>(devices: Devices) -> FoundDevices {
        let gpu_files = Ok(GpuDeviceFiles::default());
        FoundDevices { devices: devices.into_iter().collect(), do_all_answer: true, gpu_files }
    }
}

/// Whether GPUs are shared under NVIDIA's MPS.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum MpsMode {
    /// Where it works.
    #[default]
    Auto,
    /// Never: jobs that share a GPU are time-sliced, and only a watchdog enforces memory limits.
    Off,
}

/// How a rank finds its GPUs in `CUDA_VISIBLE_DEVICES`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum DeviceIds {
    /// By number where no other GPU can be meant, else by UUID.
    #[default]
    Auto,
    /// By UUID.
    Uuid,
    /// By number, in PCI order.
    Index,
}

/// The largest number of devices; more is taken for a mistake.
const MAX_DEVICES: u32 = 1024;

/// A text that is no device specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a device specification: use auto, host:4 for 1 to {MAX_DEVICES} host slots, or sim:2xH200-141G for \
     simulated GPUs"
)]
pub struct ParseDeviceSpecError(String);

impl FromStr for DeviceSpec {
    type Err = ParseDeviceSpecError;
    fn from_str(text: &str) -> Result<DeviceSpec, ParseDeviceSpecError> {
        let spec = match text.split_once(':') {
            None if text == "auto" => Some(DeviceSpec::Auto),
            Some(("host", slots)) => count(slots).map(DeviceSpec::Host),
            Some(("sim", gpus)) => simulated(gpus),
            None | Some(_) => None,
        };
        spec.ok_or_else(|| ParseDeviceSpecError(text.to_owned()))
    }
}

fn simulated(text: &str) -> Option<DeviceSpec> {
    let (number, kind) = text.split_once('x')?;
    let (model, memory) = kind.rsplit_once('-').filter(|(model, _)| !model.is_empty())?;
    let memory = memory.parse().ok().filter(|memory| *memory > Bytes::ZERO)?;
    Some(DeviceSpec::Simulated { count: count(number)?, model: model.to_owned(), memory })
}

fn count(text: &str) -> Option<u32> {
    text.parse().ok().filter(|count| (1..=MAX_DEVICES).contains(count))
}

impl fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceSpec::Auto => f.write_str("auto"),
            DeviceSpec::Host(slots) => write!(f, "host:{slots}"),
            DeviceSpec::Simulated { count, model, memory } => {
                write!(f, "sim:{count}x{model}-{}", memory.to_string().replace([' ', 'i', 'B'], ""))
            }
        }
    }
}

impl DeviceSpec {
    /// The devices. Asks the driver, which may take a second. Blocks.
    pub(crate) fn find(&self, nvml_library: Option<&Path>, mps: MpsMode) -> FoundDevices {
        match self {
            DeviceSpec::Auto => gpus_or_host_slot(nvml_library, mps),
            DeviceSpec::Host(slots) => (0..*slots).map(host_slot).collect(),
            DeviceSpec::Simulated { count, model, memory } => {
                (0..*count).map(|number| fake(number, model, *memory)).collect()
            }
        }
    }
}

fn gpus_or_host_slot(nvml_library: Option<&Path>, mps: MpsMode) -> FoundDevices {
    match gpus(nvml_library) {
        Ok(found) if !found.devices.is_empty() => {
            let devices = found.devices.into_iter().map(|gpu| offered(gpu, mps)).collect();
            FoundDevices { devices, ..found }
        }
        Ok(_) => {
            tracing::info!("the NVIDIA driver knows no GPU that answers: offering one host slot");
            only_host_slot()
        }
        Err(error) => {
            tracing::info!(%error, "there are no GPUs: offering one host slot");
            only_host_slot()
        }
    }
}

fn only_host_slot() -> FoundDevices {
    for gpu in other_gpus() {
        tracing::warn!("{gpu} is not used: Cohabit runs jobs on NVIDIA GPUs only");
    }
    [host_slot(0)].into_iter().collect()
}

fn gpus(library: Option<&Path>) -> Result<FoundDevices, GpusUnavailable> {
    let session = NvmlSession::open(library)?;
    let unreadable = |error: &GpuError| tracing::warn!(%error, "a GPU does not answer and is not offered");
    let answers = session.devices();
    Ok(FoundDevices {
        do_all_answer: answers.iter().all(Result::is_ok),
        devices: answers.into_iter().filter_map(|gpu| gpu.inspect_err(unreadable).ok()).collect(),
        gpu_files: session.device_files().map_err(|error| error.to_string()),
    })
}

/// A GPU as this worker lets it be shared. What was found is said in the log, too.
fn offered(mut gpu: Device, mps: MpsMode) -> Device {
    gpu.condition.sharing = match (gpu.condition.sharing, mps) {
        (DeviceSharing::Enforced | DeviceSharing::OneUser(_), MpsMode::Off) => {
            DeviceSharing::Unenforced("MPS is switched off on this worker".to_owned())
        }
        (sharing, MpsMode::Auto | MpsMode::Off) => sharing,
    };
    let memory = gpu.memory.map_or_else(|| "unknown".to_owned(), |memory| memory.to_string());
    let sharing = &gpu.condition.sharing;
    tracing::info!(id = %gpu.id, model = gpu.model, memory, %sharing, "found a GPU");
    gpu
}

fn host_slot(number: u32) -> Device {
    let id = DeviceId(format!("host-{number}").into());
    Device::new(id, DeviceKind::Host, "host slot", None)
}

fn fake(number: u32, model: &str, memory: Bytes) -> Device {
    let id = DeviceId(format!("fake-{number}").into());
    Device::new(id, DeviceKind::Fake, model, Some(memory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_shown_alike() {
        for text in ["auto", "host:4", "sim:2xH200-141G", "sim:1xRTX-4090-24G", "sim:3xT-512M"] {
            assert_eq!(text.parse::<DeviceSpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_device_lists_are_refused_with_examples() {
        for text in [
            "",
            "gpu",
            "host",
            "host:",
            "host:0",
            "host:-1",
            "host:99999",
            "sim:H200",
            "sim:2xH200",
            "sim:0xH-1G",
            "sim:2x-1G",
            "sim:2xH-0G",
        ] {
            let refusal = text.parse::<DeviceSpec>().unwrap_err().to_string();
            assert!(refusal.contains("host:4"), "{refusal}");
        }
    }

    #[test]
    fn simulated_gpus_say_so() {
        let devices = "sim:2xH200-141G".parse::<DeviceSpec>().unwrap().find(None, MpsMode::Auto).devices;
        assert_eq!(devices[1].id, DeviceId("fake-1".into()));
        assert_eq!((devices[1].kind, devices[1].memory), (DeviceKind::Fake, Some(Bytes(141 << 30))));
    }

    #[test]
    fn without_a_driver_there_is_one_host_slot() {
        let devices = DeviceSpec::Auto.find(Some(Path::new("/no/such/library.so")), MpsMode::Auto).devices;
        assert_eq!(devices, [host_slot(0)]);
    }

    #[test]
    fn without_mps_no_limit_is_reported_as_enforced() {
        let sharing = |found: DeviceSharing, mps| {
            let mut gpu = Device::new(DeviceId("GPU-a".into()), DeviceKind::Gpu, "H200", None);
            gpu.condition.sharing = found;
            offered(gpu, mps).condition.sharing
        };
        assert_eq!(sharing(DeviceSharing::Enforced, MpsMode::Auto), DeviceSharing::Enforced);
        assert!(matches!(sharing(DeviceSharing::Enforced, MpsMode::Off), DeviceSharing::Unenforced(_)));
        let alone = DeviceSharing::Alone("it is divided".into());
        assert_eq!(sharing(alone.clone(), MpsMode::Off), alone);
    }
}
