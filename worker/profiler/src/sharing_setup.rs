//! How workloads access the GPU: exclusively or time-sliced without MPS, or through an MPS daemon that runs
//! as long as it is needed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cohabit_gpu::mps::{self, ClientRemoval, MpsDaemon, MpsDirectory, MpsError, MpsPrograms, ServerState};
use cohabit_types::{Bytes, ComputeMode, Device, DeviceSharing, SharingStrategy};
use nix::unistd::geteuid;

use crate::error::ProfileError;
use crate::gpu::TargetGpu;
use crate::workload::ProfileWorkload;

/// How long the daemon may take to end.
const QUIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The current setup of the GPU.
pub(super) struct SharingSetup<'a> {
    gpu: &'a TargetGpu,
    directory: MpsDirectory,
    programs: Result<MpsPrograms, MpsError>,
    daemon: Option<MpsDaemon>,
    /// Memory in use without workloads.
    idle: Option<Bytes>,
}

impl<'a> SharingSetup<'a> {
    /// Starts without MPS. Stops a daemon that an earlier comparison left with this state directory.
    pub(super) fn open(
        gpu: &'a TargetGpu,
        state: &Path,
        search_path: &str,
    ) -> Result<SharingSetup<'a>, ProfileError> {
        let directory = MpsDirectory::create(state, &gpu.device.id)?;
        let programs = MpsPrograms::find(search_path);
        let adopt = |found| MpsDaemon::adopt(found, &directory, &gpu.device.id);
        let daemon = programs.as_ref().ok().map(adopt).transpose()?.flatten();
        let mut access = SharingSetup { gpu, directory, programs, daemon, idle: None };
        access.leave_mps()?;
        Ok(access)
    }

    /// Prepares the GPU for this way of sharing.
    pub(super) fn enter(&mut self, sharing: SharingStrategy) -> Result<(), ProfileError> {
        match sharing {
            SharingStrategy::Exclusive | SharingStrategy::TimeSliced => self.leave_mps()?,
            SharingStrategy::Mps => self.enter_mps()?,
        }
        self.idle = self.gpu.scan()?.reading.memory_used;
        Ok(())
    }

    fn enter_mps(&mut self) -> Result<(), ProfileError> {
        if self.daemon.as_ref().is_some_and(|daemon| daemon.state() != ServerState::Active) {
            self.leave_mps()?;
        }
        if self.daemon.is_none() {
            let programs = self.programs.as_ref().map_err(|error| MpsError(error.to_string()))?;
            self.daemon =
                Some(MpsDaemon::start(programs, &self.directory, &self.gpu.device.id, geteuid().as_raw())?);
        }
        Ok(())
    }

    fn leave_mps(&mut self) -> Result<(), ProfileError> {
        match self.daemon.take() {
            Some(daemon) => Ok(daemon.quit(QUIT_TIMEOUT)?),
            None => Ok(()),
        }
    }

    /// Memory in use without workloads.
    pub(super) fn idle(&self) -> Option<Bytes> {
        self.idle
    }

    /// The GPU variables of a workload.
    pub(super) fn environment(&self, workload: &ProfileWorkload) -> BTreeMap<String, String> {
        let device = &self.gpu.device;
        let mut environment = match &self.daemon {
            Some(_) => mps::client_environment(&self.directory, &device.id, limit(workload, device), None),
            None => mps::environment_without_mps(&self.directory),
        };
        environment.insert("CUDA_VISIBLE_DEVICES".into(), device.id.to_string());
        environment.insert("CUDA_DEVICE_ORDER".into(), "PCI_BUS_ID".into());
        environment
    }

    /// How workloads are removed from the MPS server, if there is one.
    pub(super) fn removal(&self) -> Option<ClientRemoval> {
        let programs = self.programs.as_ref().ok().filter(|_| self.daemon.is_some())?;
        Some(ClientRemoval::new(programs, &self.directory))
    }

    /// The clients of the MPS server; `None` without MPS.
    pub(super) fn clients(&self) -> Option<Result<Vec<i32>, MpsError>> {
        self.daemon.as_ref().map(MpsDaemon::clients)
    }

    /// The faults of the MPS server since the last call.
    pub(super) fn faults(&mut self) -> Vec<String> {
        let faults = self.daemon.as_mut().map(MpsDaemon::faults).unwrap_or_default();
        faults.into_iter().map(|fault| fault.detail).collect()
    }
}

/// Stops the daemon, however the comparison ends.
impl Drop for SharingSetup<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.leave_mps() {
            tracing::warn!(%error, "the MPS daemon could not be stopped completely");
        }
    }
}

/// The memory limit of a workload; without one, all memory of the GPU.
fn limit(workload: &ProfileWorkload, device: &Device) -> Bytes {
    // The memory of the GPU is unknown: the GPU itself is the limit.
    workload.memory.or(device.memory).unwrap_or(Bytes(1 << 40))
}

/// Refuses a way of sharing that this GPU does not support.
pub(super) fn check(device: &Device, sharing: SharingStrategy) -> Result<(), ProfileError> {
    let refuse = |why: &str| {
        let gpu = device.id.to_string();
        Err(ProfileError::CannotShare { gpu, sharing: sharing.word(), why: why.to_owned() })
    };
    let mode = device.gpu.as_ref().map(|gpu| gpu.compute_mode);
    if sharing == SharingStrategy::TimeSliced && mode == Some(ComputeMode::ExclusiveProcess) {
        return refuse(
            "its compute mode lets one process at a time in; an administrator changes that with \
                       `nvidia-smi -c DEFAULT`",
        );
    }
    match (sharing, &device.condition.sharing) {
        (SharingStrategy::Exclusive, _)
        | (
            SharingStrategy::TimeSliced,
            DeviceSharing::Enforced | DeviceSharing::OneUser(_) | DeviceSharing::Unenforced(_),
        )
        | (SharingStrategy::Mps, DeviceSharing::Enforced | DeviceSharing::OneUser(_)) => Ok(()),
        (SharingStrategy::TimeSliced, DeviceSharing::Alone(why))
        | (SharingStrategy::Mps, DeviceSharing::Alone(why) | DeviceSharing::Unenforced(why)) => refuse(why),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Condition, DeviceId, DeviceKind, GpuProperties};

    use super::*;

    #[test]
    fn an_unsupported_way_of_sharing_is_refused_with_the_reason() {
        let device = |sharing| Device {
            condition: Condition { sharing, ..Condition::default() },
            ..Device::new(DeviceId("GPU-1".into()), DeviceKind::Gpu, "Fake", None)
        };
        let unenforced = device(DeviceSharing::Unenforced("no MPS here".into()));
        check(&unenforced, SharingStrategy::TimeSliced).unwrap();
        let refusal = check(&unenforced, SharingStrategy::Mps).unwrap_err().to_string();
        assert!(refusal.contains("by mps: no MPS here"), "{refusal}");
        let alone = device(DeviceSharing::Alone("MIG is on".into()));
        check(&alone, SharingStrategy::Exclusive).unwrap();
        assert!(check(&alone, SharingStrategy::TimeSliced).is_err());
        let mut enforced = device(DeviceSharing::Enforced);
        check(&enforced, SharingStrategy::Mps).unwrap();
        enforced.gpu =
            Some(GpuProperties { compute_mode: ComputeMode::ExclusiveProcess, ..GpuProperties::default() });
        check(&enforced, SharingStrategy::Mps).unwrap();
        let refusal = check(&enforced, SharingStrategy::TimeSliced).unwrap_err().to_string();
        assert!(refusal.contains("nvidia-smi -c DEFAULT"), "{refusal}");
    }
}
