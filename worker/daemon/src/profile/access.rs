//! How members get at the GPU: alone or by turns without MPS, or through an MPS daemon that runs as long as
//! it is needed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use cohabit_gpu::mps::{self, Daemon, Home, MpsError, Removal, ServerState, Tools};
use cohabit_types::{Bytes, ComputeMode, Device, DeviceSharing, StretchSharing};

use super::ProfileError;
use super::gpu::Gpu;
use super::workload::Workload;

/// How long the daemon may take to end.
const QUIT_PATIENCE: Duration = Duration::from_secs(10);

/// The way by which the GPU is shared now.
pub(super) struct Access<'a> {
    gpu: &'a Gpu,
    home: Home,
    tools: Result<Tools, MpsError>,
    daemon: Option<Daemon>,
    /// Memory in use while no member was there.
    idle: Option<Bytes>,
}

impl<'a> Access<'a> {
    /// Without MPS. A daemon that an earlier comparison left with this state folder is stopped.
    pub(super) fn open(gpu: &'a Gpu, state: &Path, search_path: &str) -> Result<Access<'a>, ProfileError> {
        let home = Home::of(state, &gpu.device.id)?;
        let tools = Tools::find(search_path);
        let daemon = tools.as_ref().ok().and_then(|tools| Daemon::adopt(tools, &home, &gpu.device.id));
        let mut access = Access { gpu, home, tools, daemon, idle: None };
        access.leave_mps()?;
        Ok(access)
    }

    /// Prepares the GPU for this way of sharing.
    pub(super) fn enter(&mut self, sharing: StretchSharing) -> Result<(), ProfileError> {
        match sharing {
            StretchSharing::Exclusive | StretchSharing::TimeSliced => self.leave_mps()?,
            StretchSharing::Mps => self.enter_mps()?,
        }
        self.idle = self.gpu.look()?.reading.memory_used;
        Ok(())
    }

    fn enter_mps(&mut self) -> Result<(), ProfileError> {
        if self.daemon.as_ref().is_some_and(|daemon| daemon.state() != ServerState::Active) {
            self.leave_mps()?;
        }
        if self.daemon.is_none() {
            let tools = self.tools.as_ref().map_err(|error| MpsError(error.to_string()))?;
            self.daemon = Some(Daemon::start(tools, &self.home, &self.gpu.device.id)?);
        }
        Ok(())
    }

    fn leave_mps(&mut self) -> Result<(), ProfileError> {
        match self.daemon.take() {
            Some(daemon) => Ok(daemon.quit(QUIT_PATIENCE)?),
            None => Ok(()),
        }
    }

    /// Memory in use while no member was there.
    pub(super) fn idle(&self) -> Option<Bytes> {
        self.idle
    }

    /// What a member finds in its environment.
    pub(super) fn environment(&self, workload: &Workload) -> BTreeMap<String, String> {
        let device = &self.gpu.device;
        let mut environment = match &self.daemon {
            Some(_) => mps::client_environment(&self.home, &device.id, limit(workload, device), None),
            None => mps::opt_out(&self.home),
        };
        environment.insert("CUDA_VISIBLE_DEVICES".into(), device.id.to_string());
        environment.insert("CUDA_DEVICE_ORDER".into(), "PCI_BUS_ID".into());
        environment
    }

    /// How members are taken off the MPS server, if there is one.
    pub(super) fn removal(&self) -> Option<Removal> {
        let tools = self.tools.as_ref().ok().filter(|_| self.daemon.is_some())?;
        Some(Removal::new(tools, &self.home))
    }

    /// The processes that are clients of the MPS server; none where there is no MPS.
    pub(super) fn clients(&self) -> Option<Result<Vec<i32>, MpsError>> {
        self.daemon.as_ref().map(Daemon::clients)
    }

    /// What the MPS server says of faults since the last call.
    pub(super) fn faults(&mut self) -> Vec<String> {
        let faults = self.daemon.as_mut().map(Daemon::faults).unwrap_or_default();
        faults.into_iter().map(|fault| fault.detail).collect()
    }
}

/// Whatever ends a comparison, no daemon stays.
impl Drop for Access<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.leave_mps() {
            tracing::warn!(%error, "something of the MPS daemon is left");
        }
    }
}

/// All of the GPU, if nothing else is said.
fn limit(workload: &Workload, device: &Device) -> Bytes {
    // A card whose memory nobody knows is limited by itself.
    workload.memory.or(device.memory).unwrap_or(Bytes(1 << 40))
}

/// Refuses a way by which this GPU cannot be shared.
pub(super) fn check(device: &Device, sharing: StretchSharing) -> Result<(), ProfileError> {
    let refuse = |why: &str| {
        let gpu = device.id.to_string();
        Err(ProfileError::CannotShare { gpu, sharing: sharing.word(), why: why.to_owned() })
    };
    let mode = device.gpu.as_ref().map(|gpu| gpu.compute_mode);
    if sharing == StretchSharing::TimeSliced && mode == Some(ComputeMode::ExclusiveProcess) {
        return refuse(
            "its compute mode lets one process at a time in; an administrator changes that with \
                       `nvidia-smi -c DEFAULT`",
        );
    }
    match (sharing, &device.condition.sharing) {
        (StretchSharing::Exclusive, _)
        | (StretchSharing::TimeSliced, DeviceSharing::Enforced | DeviceSharing::Unenforced(_))
        | (StretchSharing::Mps, DeviceSharing::Enforced) => Ok(()),
        (StretchSharing::TimeSliced, DeviceSharing::Alone(why))
        | (StretchSharing::Mps, DeviceSharing::Alone(why) | DeviceSharing::Unenforced(why)) => refuse(why),
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{Condition, DeviceId, DeviceKind, GpuFacts};

    use super::*;

    #[test]
    fn a_way_by_which_the_gpu_cannot_be_shared_is_refused_with_the_reason() {
        let device = |sharing| Device {
            condition: Condition { sharing, ..Condition::default() },
            ..Device::new(DeviceId("GPU-1".into()), DeviceKind::Gpu, "Fake", None)
        };
        let unenforced = device(DeviceSharing::Unenforced("no MPS here".into()));
        check(&unenforced, StretchSharing::TimeSliced).unwrap();
        let refusal = check(&unenforced, StretchSharing::Mps).unwrap_err().to_string();
        assert!(refusal.contains("by mps: no MPS here"), "{refusal}");
        let alone = device(DeviceSharing::Alone("MIG is on".into()));
        check(&alone, StretchSharing::Exclusive).unwrap();
        assert!(check(&alone, StretchSharing::TimeSliced).is_err());
        let mut enforced = device(DeviceSharing::Enforced);
        check(&enforced, StretchSharing::Mps).unwrap();
        enforced.gpu = Some(GpuFacts { compute_mode: ComputeMode::ExclusiveProcess, ..GpuFacts::default() });
        check(&enforced, StretchSharing::Mps).unwrap();
        let refusal = check(&enforced, StretchSharing::TimeSliced).unwrap_err().to_string();
        assert!(refusal.contains("nvidia-smi -c DEFAULT"), "{refusal}");
    }
}
