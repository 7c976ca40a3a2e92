//! Where each GPU's MPS daemon lives, and what ranks find of GPUs and daemons in their environment.
//!
//! No rank meets an MPS daemon by accident: one that shares its GPU is told of the daemon of that GPU, and
//! every other is pointed to an empty place, for at the usual one there may be a daemon of somebody else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cohabit_gpu::mps::{
    ClientRemoval, MpsDaemon, MpsDirectory, MpsError, MpsPrograms, ServerState, client_environment,
    environment_without_mps,
};
use cohabit_types::{Device, DeviceId, DeviceKind};
use cohabit_worker_core::{GpuAccess, MpsLimits, RankStart};
use tokio::task::spawn_blocking;

/// Of a rank that is a client of an MPS server: its GPU, the home of the server's daemon, and its limits.
type MpsClient<'a> = (&'a DeviceId, &'a MpsDirectory, MpsLimits);

/// The GPUs of this worker.
#[derive(Debug, Clone)]
pub(crate) struct MpsDirectories {
    /// NVIDIA's programs; or what is missing.
    pub(crate) tools: Result<MpsPrograms, String>,
    mps_directories: BTreeMap<DeviceId, MpsDirectory>,
}

impl MpsDirectories {
    /// Makes a home for each GPU among these devices.
    ///
    /// # Errors
    /// When one cannot be made private.
    pub(crate) fn make(
        state: &Path,
        devices: &[Device],
        search_path: &str,
    ) -> Result<MpsDirectories, MpsError> {
        let gpus = devices.iter().filter(|device| device.kind == DeviceKind::Gpu);
        let mps_directories = gpus.map(|gpu| Ok((gpu.id.clone(), MpsDirectory::of(state, &gpu.id)?)));
        Ok(MpsDirectories {
            tools: MpsPrograms::find(search_path).map_err(|missing| missing.to_string()),
            mps_directories: mps_directories.collect::<Result<_, MpsError>>()?,
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&DeviceId, &MpsDirectory)> {
        self.mps_directories.iter()
    }

    /// Where the sockets of all daemons are.
    pub(crate) fn pipes(&self) -> Vec<PathBuf> {
        self.mps_directories.values().map(MpsDirectory::pipe).collect()
    }

    /// What a rank with these devices finds in its environment. On a machine with GPUs a rank without any
    /// sees none.
    pub(crate) fn environment(&self, devices: &[DeviceId], access: GpuAccess) -> BTreeMap<String, String> {
        if let Some((gpu, home, limits)) = self.client(devices, access) {
            return client_environment(home, gpu, limits.memory, limits.percentage);
        }
        let Some(any) = self.mps_directories.values().next() else { return BTreeMap::new() };
        let own = devices.iter().filter(|device| self.mps_directories.contains_key(device));
        let own: Vec<&str> = own.map(|device| device.as_str()).collect();
        let mut environment = environment_without_mps(any);
        environment.insert("CUDA_VISIBLE_DEVICES".to_owned(), own.join(","));
        environment.insert("CUDA_DEVICE_ORDER".to_owned(), "PCI_BUS_ID".to_owned());
        environment
    }

    /// How the rank's processes are taken off the MPS server of its GPU, if they are its clients.
    pub(crate) fn removal(&self, devices: &[DeviceId], access: GpuAccess) -> Option<ClientRemoval> {
        let (_, home, _) = self.client(devices, access)?;
        Some(ClientRemoval::new(self.tools.as_ref().ok()?, home))
    }

    /// Whether this rank was a client of an MPS server that has broken down since the last worker daemon saw
    /// it well, even if it has recovered. One that was stopped when it had no clients has not broken down.
    pub(crate) async fn lost_its_mps_server(&self, rank: &RankStart) -> bool {
        let (Some((gpu, home, _)), Ok(tools)) = (self.client(&rank.devices, rank.access), &self.tools) else {
            return false;
        };
        let (tools, home, gpu) = (tools.clone(), home.clone(), gpu.clone());
        let broke_down = spawn_blocking(move || {
            let Some(mut daemon) = MpsDaemon::adopt(&tools, &home, &gpu) else {
                return home.has_daemon_record();
            };
            matches!(daemon.state(), ServerState::Gone | ServerState::Fault) || !daemon.faults().is_empty()
        });
        // Who cannot be looked at is not accused.
        broke_down.await.unwrap_or(false)
    }

    fn client<'a>(&'a self, devices: &'a [DeviceId], access: GpuAccess) -> Option<MpsClient<'a>> {
        match access {
            GpuAccess::Mps(limits) => {
                let gpu = devices.first()?;
                Some((gpu, self.mps_directories.get(gpu)?, limits))
            }
            GpuAccess::None | GpuAccess::Exclusive | GpuAccess::TimeSliced(_) => None,
        }
    }
}
