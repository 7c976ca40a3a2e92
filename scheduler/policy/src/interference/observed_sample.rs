//! What was observed of one rank while the set of jobs on its device stayed the same.

use cohabit_types::{SharingStrategy, Span, Time};

use super::{ColocationSet, GpuKind, SetMember};

/// One period of a rank, with what is known of all jobs on the device.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedSample {
    /// The kind of GPU.
    pub gpu: GpuKind,
    /// How it was shared.
    pub sharing: SharingStrategy,
    /// The job of the rank.
    pub member: SetMember,
    /// All other jobs on the device; empty if it was alone.
    pub neighbors: Vec<SetMember>,
    /// When the period ended.
    pub until: Time,
    /// How long it was.
    pub length: Span,
    /// Steps in it.
    pub steps: u64,
    /// Steps per second.
    pub rate: f64,
    /// The most memory that the rank held on the device, in bytes.
    pub memory: Option<f64>,
    /// The mean of the device's utilization, 0 to 1: the rank's own only where it was alone.
    pub utilization: Option<f64>,
}

/// A period with fewer steps is noise,
const MIN_STEPS: u64 = 5;
/// and so is a shorter one.
const MIN_LENGTH: Span = Span::from_secs(2);

impl ObservedSample {
    pub(super) fn is_informative(&self) -> bool {
        let mut everybody = self.neighbors.iter().chain([&self.member]);
        self.steps >= MIN_STEPS
            && self.length >= MIN_LENGTH
            && self.rate.is_finite()
            && self.rate > 0.0
            && everybody.all(|member| !member.model.is_empty())
    }

    /// All jobs on the device, in the order of their configurations.
    pub(super) fn set(&self) -> ColocationSet {
        ColocationSet::of_observed(&self.gpu, self.sharing, &self.member, &self.neighbors)
    }
}
