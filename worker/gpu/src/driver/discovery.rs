//! Finds the GPUs of this host and reads their properties.

use std::env;
use std::fmt;
use std::path::Path;

use cohabit_types::{
    Bytes, ComputeMode, Condition, Device, DeviceId, DeviceKind, GpuProperties, Health, Mig,
};
use nvml_wrapper::enum_wrappers::device::ComputeMode as Mode;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device as Handle, Nvml, cuda_driver_version_major, cuda_driver_version_minor};

use super::error::GpuError;
use super::error::{gpu_error, if_reported};
use super::multiprocessors::multiprocessors;
use super::peers::{DiscoveredGpu, Wiring, peers};
use crate::device_files::GpuDeviceFiles;
use crate::mps::{MpsPrograms, check_sharing};

/// The model of a GPU that does not report its name.
const UNKNOWN_MODEL: &str = "NVIDIA GPU";
const MIG_ON: u32 = 1;
/// Where the kernel describes devices.
const SYSFS: &str = "/sys";

/// A GPU in messages.
pub(super) struct GpuLabel<'a> {
    pub(super) index: u32,
    pub(super) id: Option<&'a DeviceId>,
}

impl fmt::Display for GpuLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "GPU {} ({id})", self.index),
            None => write!(f, "GPU {}", self.index),
        }
    }
}

/// All GPUs in the driver's order; an error for each one that cannot be queried.
pub(super) fn devices(nvml: &Nvml) -> Vec<Result<Device, GpuError>> {
    let count = match nvml.device_count() {
        Ok(count) => count,
        Err(error) => return vec![Err(gpu_error(&"the NVIDIA driver", &error))],
    };
    let mut known = Vec::new();
    let read: Vec<Result<Device, GpuError>> = (0..count)
        .map(|index| {
            let (device, gpu) = read(nvml, index)?;
            known.push(gpu);
            Ok(device)
        })
        .collect();
    let programs = MpsPrograms::find(&env::var("PATH").unwrap_or_default());
    let users = programs.as_ref().map(MpsPrograms::users);
    let finish = |mut device: Device| {
        let gpu = known.iter().find(|gpu| gpu.id == device.id);
        if let (Some(properties), Some(gpu)) = (&mut device.gpu, gpu) {
            properties.peers = peers(gpu, &known);
            let (health, sharing) = (health(properties), check_sharing(properties, users));
            device.condition = Condition { health, sharing, ..Condition::default() };
        }
        device
    };
    read.into_iter().map(|device| device.map(finish)).collect()
}

/// The device files of all GPUs that answer.
pub(super) fn device_files(nvml: &Nvml) -> Result<GpuDeviceFiles, GpuError> {
    let count = nvml.device_count().map_err(|error| gpu_error(&"the NVIDIA driver", &error))?;
    let mut reported = Vec::new();
    for index in 0..count {
        // One that does not answer is not offered, and its files stay closed.
        let Ok((gpu, id)) = nvml.device_by_index(index).and_then(|gpu| gpu.uuid().map(|id| (gpu, id))) else {
            continue;
        };
        let id = DeviceId(id.into());
        let unknown = |error| gpu_error(&GpuLabel { index, id: Some(&id) }, &error);
        let minor = gpu.minor_number().map_err(unknown)?;
        let address = gpu.pci_info().map_err(unknown)?.bus_id;
        reported.push((id, minor, address));
    }
    Ok(GpuDeviceFiles::read(reported.into_iter(), Path::new(SYSFS)))
}

/// One GPU, without what needs a comparison with others.
fn read(nvml: &Nvml, index: u32) -> Result<(Device, DiscoveredGpu<'_>), GpuError> {
    let nameless = |error| gpu_error(&GpuLabel { index, id: None }, &error);
    let handle = nvml.device_by_index(index).map_err(nameless)?;
    let id = DeviceId(handle.uuid().map_err(nameless)?.into());
    let read = || -> Result<(Device, Wiring), NvmlError> {
        let pci = handle.pci_info()?;
        let device = Device {
            id: id.clone(),
            kind: DeviceKind::Gpu,
            model: if_reported(handle.name())?.unwrap_or_else(|| UNKNOWN_MODEL.to_owned()),
            memory: if_reported(handle.memory_info())?.map(|memory| Bytes(memory.total)),
            gpu: Some(properties(&handle, pci.bus_id.clone())?),
            condition: Condition::default(),
        };
        Ok((device, Wiring::of(&handle, &pci)?))
    };
    let (device, wiring) = read().map_err(|error| gpu_error(&GpuLabel { index, id: Some(&id) }, &error))?;
    Ok((device, DiscoveredGpu { id, handle, wiring }))
}

fn properties(gpu: &Handle<'_>, pci_address: String) -> Result<GpuProperties, NvmlError> {
    let nvml = gpu.nvml();
    let capability = if_reported(gpu.cuda_compute_capability())?
        .and_then(|capability| pair(capability.major, capability.minor));
    let cuda = if_reported(nvml.sys_cuda_driver_version())?
        .and_then(|version| pair(cuda_driver_version_major(version), cuda_driver_version_minor(version)));
    let has_mig = if_reported(gpu.mig_mode())?.is_some_and(|mode| mode.current == MIG_ON);
    Ok(GpuProperties {
        multiprocessors: multiprocessors(gpu, capability)?,
        compute_capability: capability,
        pci_address,
        driver: if_reported(nvml.sys_driver_version())?.unwrap_or_default(),
        cuda,
        mig: if has_mig { Mig::On } else { Mig::Off },
        compute_mode: if_reported(gpu.compute_mode())?.map_or(ComputeMode::Default, compute_mode),
        peers: Vec::new(),
    })
}

/// A GPU in mode Prohibited can run nothing. One with MIG has instances, or nothing that a program could use.
fn health(gpu: &GpuProperties) -> Health {
    match (gpu.mig, gpu.compute_mode) {
        (Mig::On, _) => {
            let why = "it is partitioned by MIG, which Cohabit does not support: turn MIG off with \
                       'nvidia-smi -mig 0', and restart the worker";
            Health::Fenced(why.to_owned())
        }
        (Mig::Off, ComputeMode::Default | ComputeMode::ExclusiveProcess) => Health::Well,
        (Mig::Off, ComputeMode::Prohibited) => {
            let why = "its compute mode is Prohibited: set another with 'nvidia-smi -c DEFAULT', \
                       and restart the worker";
            Health::Fenced(why.to_owned())
        }
    }
}

fn pair(major: i32, minor: i32) -> Option<(u32, u32)> {
    Some((major.try_into().ok()?, minor.try_into().ok()?))
}

fn compute_mode(mode: Mode) -> ComputeMode {
    match mode {
        Mode::Default => ComputeMode::Default,
        // ExclusiveThread implies one process at a time; no current driver has it.
        Mode::ExclusiveProcess | Mode::ExclusiveThread => ComputeMode::ExclusiveProcess,
        Mode::Prohibited => ComputeMode::Prohibited,
    }
}
