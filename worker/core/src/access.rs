//! How a rank comes to its GPUs: what it asks for, and what it gets on a GPU as that is now.

use cohabit_types::{
    Bytes, ComputeLimit, Demand, DeviceSharing, EnforcementRequirement, Share, StartFailure,
};

use crate::gpu::Gpu;
use crate::service::MpsState;
use crate::{GpuAccess, MpsLimits, MpsOrder};

const MIB: u64 = 1 << 20;

/// The live ranks on a GPU, by how they come to it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankCounts {
    pub(crate) exclusive: usize,
    pub(crate) clients: usize,
    pub(crate) taking_turns: usize,
}

impl RankCounts {
    /// Takes in another rank.
    pub(crate) const fn add(&mut self, access: GpuAccess) {
        match access {
            GpuAccess::None => {}
            GpuAccess::Exclusive => self.exclusive += 1,
            GpuAccess::Mps(_) => self.clients += 1,
            GpuAccess::TimeSliced(_) => self.taking_turns += 1,
        }
    }
}

/// What a GPU says to a rank that is to start on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GpuAdmission {
    /// It may start, in this way.
    Granted(GpuAccess),
    /// Its MPS daemon has to be told this first.
    After(MpsOrder),
    /// Something has to end, or to be answered, first.
    Later,
    /// It may never start here.
    Refused(StartFailure),
}

/// For a rank that wants the GPU for itself: no MPS daemon may run there.
pub(crate) fn admit_exclusive(gpu: &Gpu, rank_counts: RankCounts) -> GpuAdmission {
    if let Some(why) = gpu.fenced() {
        return GpuAdmission::Refused(StartFailure::DeviceFenced(why.to_owned()));
    }
    match gpu.service() {
        MpsState::Idle => GpuAdmission::Granted(GpuAccess::Exclusive),
        MpsState::Up { .. } if rank_counts.clients == 0 => GpuAdmission::After(MpsOrder::Stop),
        MpsState::Up { .. }
        | MpsState::Starting
        | MpsState::Adopting
        | MpsState::Stopping
        | MpsState::Faulted(_)
        | MpsState::Recovering(_) => GpuAdmission::Later,
    }
}

/// For a rank that shares the GPU: under MPS, or else in turns, if the job puts up with that.
pub(crate) fn admit_shared(
    gpu: &Gpu,
    rank_counts: RankCounts,
    demand: &Demand,
    share: Share,
) -> GpuAdmission {
    if let Some(why) = gpu.fenced() {
        return GpuAdmission::Refused(StartFailure::DeviceFenced(why.to_owned()));
    }
    if rank_counts.exclusive > 0 {
        return GpuAdmission::Later;
    }
    match (gpu.sharing(rank_counts), demand.limits) {
        (DeviceSharing::Enforced, _) => match gpu.service() {
            MpsState::Idle => GpuAdmission::After(MpsOrder::Start),
            MpsState::Up { .. } => GpuAdmission::Granted(GpuAccess::Mps(mps_limits(gpu, demand, share))),
            MpsState::Starting
            | MpsState::Adopting
            | MpsState::Stopping
            | MpsState::Faulted(_)
            | MpsState::Recovering(_) => GpuAdmission::Later,
        },
        (DeviceSharing::Unenforced(_), EnforcementRequirement::BestEffort) => {
            GpuAdmission::Granted(GpuAccess::TimeSliced(memory(gpu, demand, share)))
        }
        (DeviceSharing::Unenforced(why), EnforcementRequirement::Enforced)
        | (DeviceSharing::Alone(why), _) => GpuAdmission::Refused(StartFailure::Unenforced(why)),
    }
}

/// All of a rank's processes together: what it asked for, or else its share. What has no memory to count
/// has none to limit.
fn memory(gpu: &Gpu, demand: &Demand, share: Share) -> Bytes {
    let part = |all: Bytes| Bytes((u128::from(all.0) * u128::from(share.0) / 1_000) as u64);
    demand.gpu_memory.or_else(|| gpu.memory().map(part)).unwrap_or(Bytes(u64::MAX))
}

/// MPS limits each process by itself, in whole MiB and whole per cent.
fn mps_limits(gpu: &Gpu, demand: &Demand, share: Share) -> MpsLimits {
    let each = memory(gpu, demand, share).0 / u64::from(demand.gpu_processes.max(1));
    MpsLimits {
        memory: Bytes((each / MIB).max(1) * MIB),
        percentage: match demand.compute {
            ComputeLimit::Open => None,
            ComputeLimit::Capped => Some((share.0 / 10).max(1)),
        },
    }
}
