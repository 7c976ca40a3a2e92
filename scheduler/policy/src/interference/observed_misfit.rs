//! What was observed when a job found no memory left on a GPU.

use cohabit_types::{SharingStrategy, Time};

use super::{ColocationSet, GpuKind, SetMember};

/// A job that found no memory left, with what is known of all jobs on the device.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedMisfit {
    /// The kind of GPU.
    pub gpu: GpuKind,
    /// How it was shared.
    pub sharing: SharingStrategy,
    /// The job that failed.
    pub member: SetMember,
    /// All other jobs on the device; empty if it was alone.
    pub neighbors: Vec<SetMember>,
    /// When it failed, by the clock that samples of the device go by.
    pub at: Time,
}

impl ObservedMisfit {
    /// All jobs on the device; `None` if one of them has no name.
    pub(super) fn set(&self) -> Option<ColocationSet> {
        let set = ColocationSet::of_observed(&self.gpu, self.sharing, &self.member, &self.neighbors);
        set.members.iter().all(|member| !member.model.is_empty()).then_some(set)
    }
}
