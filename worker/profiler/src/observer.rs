//! Receives the progress of a profile run.

use cohabit_types::SharingStrategy;

/// The stage of the current set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialStage {
    /// Its members start.
    Starting,
    /// They make steps that are not counted.
    WarmingUp,
    /// Their steps are counted.
    Measuring,
}

/// A set that could not be measured. The next command tries it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmeasuredSet {
    /// Its members.
    pub workloads: Vec<String>,
    /// How they were to share the GPU.
    pub sharing: SharingStrategy,
    /// Why not.
    pub reason: String,
}

/// Is told about the progress of a comparison.
pub trait ProfileObserver {
    /// The next set begins: number `before` (from 0) of `of` sets.
    fn begins(&mut self, workloads: &[String], sharing: SharingStrategy, before: usize, of: usize);

    /// The current set has reached this stage.
    fn stage(&mut self, stage: TrialStage);

    /// The current set has ended. `reason` says why it has no rates, if so.
    fn ended(&mut self, reason: Option<&str>);
}
