//! What is evaluated, and the observer of an evaluation.

use cohabit_policy::interference::InterferenceContext;

use super::estimates::EstimatorKind;
use crate::machine::Hardware;
use crate::machine_spec::MachineSpec;
use crate::workload::WorkloadJob;

/// What is to be evaluated.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The machines.
    pub shapes: Vec<MachineSpec>,
    /// What is true of jobs beside each other on one of their devices.
    pub hardware: Hardware,
    /// The jobs; what is true of them is hidden from the policy.
    pub jobs: Vec<WorkloadJob>,
    /// The policy's name, with parameters where it takes some.
    pub policy: String,
    /// What the policy knows of jobs beside each other, if it asks.
    pub knowledge: InterferenceContext,
    /// Where estimates come from.
    pub estimator: EstimatorKind,
    /// What draws errors of estimates; the same for every policy.
    pub seed: u64,
}

/// Whoever watches an evaluation from outside the simulated world.
pub trait Observer {
    /// So many of the jobs have ended.
    fn progressed(&mut self, ended: usize, jobs: usize);

    /// A real clock, in microseconds since whenever: to time the policy.
    fn clock_us(&mut self) -> u64;
}
