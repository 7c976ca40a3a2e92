//! The directory of each GPU's MPS daemon, and the variables that a rank gets for its GPUs and its daemon.
//!
//! No rank meets an MPS daemon by accident: a rank that shares its GPU gets the directory of that GPU's
//! daemon, and every other rank an empty one, because another user's daemon may run at the default path.

use std::collections::BTreeMap;
use std::path::Path;

use cohabit_gpu::mps::{
    ClientRemoval, MpsDaemon, MpsDirectory, MpsError, MpsPrograms, ServerState, client_environment,
    environment_without_mps,
};
use cohabit_types::{Bytes, Device, DeviceId, DeviceKind};
use cohabit_worker_core::{GpuAccess, MpsLimits, RankStart};
use tokio::task::spawn_blocking;

use super::container_environment::container_environment;
use super::framework_memory::framework_memory;
use super::gpu_numbers::GpuNumbers;

/// A rank that is an MPS client: its GPU, the directory of the daemon, and its limits.
type MpsClient<'a> = (&'a DeviceId, &'a MpsDirectory, MpsLimits);

/// The MPS directories of this worker's GPUs.
#[derive(Debug, Clone)]
pub(crate) struct MpsDirectories {
    /// NVIDIA's programs, or why they cannot be used.
    pub(crate) programs: Result<MpsPrograms, String>,
    directories: BTreeMap<DeviceId, MpsDirectory>,
    /// The memory of each GPU, where the driver reports it.
    memory: BTreeMap<DeviceId, Bytes>,
    numbers: GpuNumbers,
}

impl MpsDirectories {
    /// Creates a directory for each GPU among these devices. Blocks.
    ///
    /// # Errors
    /// When one cannot be made private.
    pub(crate) fn create(
        state: &Path,
        devices: &[Device],
        numbers: GpuNumbers,
        search_path: &str,
    ) -> Result<MpsDirectories, MpsError> {
        let gpus = || devices.iter().filter(|device| device.kind == DeviceKind::Gpu);
        let directories = gpus().map(|gpu| Ok((gpu.id.clone(), MpsDirectory::create(state, &gpu.id)?)));
        Ok(MpsDirectories {
            programs: MpsPrograms::find(search_path).map_err(|missing| missing.to_string()),
            directories: directories.collect::<Result<_, MpsError>>()?,
            memory: gpus().filter_map(|gpu| Some((gpu.id.clone(), gpu.memory?))).collect(),
            numbers,
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&DeviceId, &MpsDirectory)> {
        self.directories.iter()
    }

    /// The directories of all daemons.
    pub(crate) fn all(&self) -> Vec<MpsDirectory> {
        self.directories.values().cloned().collect()
    }

    /// The variables of a rank with these devices. On a host with GPUs, a rank without a GPU sees none.
    pub(crate) fn environment(&self, devices: &[DeviceId], access: GpuAccess) -> BTreeMap<String, String> {
        let Some(any) = self.directories.values().next() else { return BTreeMap::new() };
        let own: Vec<&DeviceId> =
            devices.iter().filter(|device| self.directories.contains_key(device)).collect();
        let mut environment = match self.client(devices, access) {
            Some((gpu, directory, limits)) => {
                client_environment(directory, gpu, limits.memory, limits.percentage)
            }
            None => environment_without_mps(any),
        };
        let uuids: Vec<&str> = own.iter().map(|gpu| gpu.as_str()).collect();
        let of_devices = [
            ("COHABIT_GPU_UUIDS", uuids.join(",")),
            ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()),
            ("CUDA_VISIBLE_DEVICES", self.numbers.visible(&own, access)),
        ];
        environment.extend(of_devices.map(|(name, value)| (name.to_owned(), value)));
        environment
    }

    /// The variables that keep frameworks within the limit of a rank that shares its GPU.
    pub(crate) fn framework_memory(&self, rank: &RankStart) -> BTreeMap<String, String> {
        let limit = match rank.access {
            GpuAccess::Mps(limits) => limits.memory,
            GpuAccess::TimeSliced(limit) => Bytes(limit.0 / u64::from(rank.spec.demand.gpu_processes.max(1))),
            GpuAccess::None | GpuAccess::Exclusive => return BTreeMap::new(),
        };
        let total = rank.devices.first().and_then(|gpu| self.memory.get(gpu)).copied();
        framework_memory(limit, total, &rank.spec.environment)
    }

    /// What a program of this rank needs in a container of Apptainer besides its own environment: these
    /// variables again, these paths, and the pipe directory of MPS.
    pub(crate) fn container_environment(
        &self,
        rank: &RankStart,
        environment: &BTreeMap<String, String>,
        paths: &[&Path],
    ) -> BTreeMap<String, String> {
        if !rank.devices.iter().any(|device| self.directories.contains_key(device)) {
            return BTreeMap::new();
        }
        let pipe = self.client(&rank.devices, rank.access).map(|(_, directory, _)| directory.pipe());
        let paths: Vec<&Path> = paths.iter().copied().chain(pipe.as_deref()).collect();
        container_environment(environment, &paths)
    }

    /// How the rank's processes are removed from the MPS server of its GPU, if they are its clients.
    pub(crate) fn removal(&self, devices: &[DeviceId], access: GpuAccess) -> Option<ClientRemoval> {
        let (_, directory, _) = self.client(devices, access)?;
        Some(ClientRemoval::new(self.programs.as_ref().ok()?, directory))
    }

    /// Whether this rank was a client of an MPS server that has failed since the last worker daemon saw it
    /// healthy, even if it has recovered. A server that was stopped because it had no clients has not failed.
    pub(crate) async fn lost_its_mps_server(&self, rank: &RankStart) -> bool {
        let (Some((gpu, directory, _)), Ok(programs)) =
            (self.client(&rank.devices, rank.access), &self.programs)
        else {
            return false;
        };
        let (programs, directory, gpu) = (programs.clone(), directory.clone(), gpu.clone());
        let has_failed = spawn_blocking(move || {
            let Some(mut daemon) = MpsDaemon::adopt(&programs, &directory, &gpu)? else {
                return directory.has_daemon_record();
            };
            let state = daemon.state();
            Ok(matches!(state, ServerState::Gone | ServerState::Fault) || !daemon.faults().is_empty())
        });
        // A server that cannot be examined does not count as failed.
        has_failed.await.map_err(|error| MpsError(error.to_string())).flatten().unwrap_or_else(|error| {
            tracing::warn!(%error, "an MPS server cannot be examined");
            false
        })
    }

    fn client<'a>(&'a self, devices: &'a [DeviceId], access: GpuAccess) -> Option<MpsClient<'a>> {
        match access {
            GpuAccess::Mps(limits) => {
                let gpu = devices.first()?;
                Some((gpu, self.directories.get(gpu)?, limits))
            }
            GpuAccess::None | GpuAccess::Exclusive | GpuAccess::TimeSliced(_) => None,
        }
    }
}
