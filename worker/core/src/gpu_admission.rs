//! Decides whether a rank may start on a GPU now, and how it accesses it.

use cohabit_types::{
    Bytes, ComputeLimit, Demand, DeviceSharing, EnforcementRequirement, Share, StartFailure,
};

use crate::gpu::{Gpu, RankCounts};
use crate::interface::{GpuAccess, MpsLimits, MpsOrder, RankStart};
use crate::mps_state::{MpsReadiness, MpsState};

const MIB: u64 = 1 << 20;

/// Whether a rank may start on a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GpuAdmission {
    /// It may start, with this access.
    Granted(GpuAccess),
    /// The MPS daemon needs this order first.
    NeedsOrder(MpsOrder),
    /// A rank must end, or an order be answered, first.
    Later,
    /// It can never start here: why.
    Refused(StartFailure),
}

/// For a rank that needs the whole GPU: no MPS daemon may run there.
pub(crate) fn admit_exclusive(gpu: &Gpu, ranks: RankCounts) -> GpuAdmission {
    if let Some(why) = gpu.fenced() {
        return GpuAdmission::Refused(StartFailure::DeviceFenced(why.to_owned()));
    }
    match gpu.service().readiness() {
        MpsReadiness::NoDaemon => GpuAdmission::Granted(GpuAccess::Exclusive),
        MpsReadiness::Serving if ranks.clients == 0 => GpuAdmission::NeedsOrder(MpsOrder::Stop),
        MpsReadiness::Serving | MpsReadiness::Changing => GpuAdmission::Later,
    }
}

/// For a rank that shares the GPU: under MPS, else by time-slicing if the job accepts that.
pub(crate) fn admit_shared(gpu: &Gpu, ranks: RankCounts, start: &RankStart) -> GpuAdmission {
    let (demand, share) = (&start.spec.demand, start.share);
    if let Some(why) = gpu.fenced() {
        return GpuAdmission::Refused(StartFailure::DeviceFenced(why.to_owned()));
    }
    if ranks.exclusive > 0 {
        return GpuAdmission::Later;
    }
    match (gpu.sharing(ranks), demand.limits) {
        (DeviceSharing::Enforced | DeviceSharing::OneUser(_), _) => {
            let account = gpu.account_of_daemon(&start.account);
            match gpu.service().readiness() {
                MpsReadiness::NoDaemon => GpuAdmission::NeedsOrder(MpsOrder::Start(account)),
                MpsReadiness::Serving if gpu.serves(account.as_deref()) => {
                    GpuAdmission::Granted(GpuAccess::Mps(mps_limits(gpu, demand, share)))
                }
                MpsReadiness::Serving if ranks.clients == 0 => GpuAdmission::NeedsOrder(MpsOrder::Stop),
                MpsReadiness::Serving | MpsReadiness::Changing => GpuAdmission::Later,
            }
        }
        // A daemon that did not start is being tried again.
        (DeviceSharing::Unenforced(_), _) if *gpu.service() == MpsState::Starting => GpuAdmission::Later,
        (DeviceSharing::Unenforced(_), EnforcementRequirement::BestEffort) => {
            GpuAdmission::Granted(GpuAccess::TimeSliced(memory(gpu, demand, share)))
        }
        (DeviceSharing::Unenforced(why), EnforcementRequirement::Enforced)
        | (DeviceSharing::Alone(why), _) => GpuAdmission::Refused(StartFailure::Unenforced(why)),
    }
}

/// The memory of all processes of a rank together: what it asked for, else its share. A device of unknown
/// memory has no limit.
fn memory(gpu: &Gpu, demand: &Demand, share: Share) -> Bytes {
    let share_of = |all: Bytes| Bytes((u128::from(all.0) * u128::from(share.0) / 1_000) as u64);
    demand.gpu_memory.or_else(|| gpu.memory().map(share_of)).unwrap_or(Bytes(u64::MAX))
}

/// MPS limits each process separately, in whole MiB and whole percents.
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
