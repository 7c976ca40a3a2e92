//! What is evaluated, and the observer of an evaluation.

use std::sync::Arc;

use cohabit_policy::interference::InterferenceContext;
use cohabit_policy::{JobTraits, SensitivityProfiles};
use cohabit_scheduler_core::MemoryMisfit;
use cohabit_types::{ColocationSample, Demand, JobId, Time};

use super::behavior::JobBehavior;
use super::estimates::EstimatorKind;
use crate::machine::Hardware;
use crate::machine_spec::MachineSpec;
use crate::workload::WorkloadJob;

/// The input of an evaluation.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The machines.
    pub shapes: Vec<MachineSpec>,
    /// The true effect of jobs on each other when they share one of their devices.
    pub hardware: Hardware,
    /// The jobs; their true run times are hidden from the policy.
    pub jobs: Vec<WorkloadJob>,
    /// The policy's name, with parameters if it takes some.
    pub policy: String,
    /// What the policy may know of the interference between jobs.
    pub knowledge: InterferenceContext,
    /// What the policy may know of how much cores and host memory speed jobs up.
    pub sensitivity: Arc<SensitivityProfiles>,
    /// Whether users take turns by what they are entitled to.
    pub fair_share: bool,
    /// The source of the estimates.
    pub estimator: EstimatorKind,
    /// Which jobs report their progress, and what stops cost.
    pub behavior: JobBehavior,
    /// The seed of the errors of estimates; the same for every policy.
    pub seed: u64,
}

/// Learns interference while an evaluation runs.
pub trait ColocationLearner {
    /// Learns from what workers reported of ranks beside each other; `lookup` describes their jobs. Returns
    /// what policies know from now on, if that has changed.
    fn observe(
        &mut self,
        now: Time,
        samples: &[ColocationSample],
        lookup: &dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)>,
    ) -> Option<InterferenceContext>;

    /// Learns that a rank found no memory left on its device. Returns what policies know from the next plan
    /// on, if that has changed.
    fn observe_misfit(
        &mut self,
        now: Time,
        misfit: &MemoryMisfit,
        lookup: &dyn Fn(JobId) -> Option<(Demand, Arc<JobTraits>)>,
    ) -> Option<InterferenceContext>;
}

/// The observer of an evaluation, outside the simulated cluster.
pub trait Observer {
    /// Called when a job has ended: this many of the jobs have.
    fn progressed(&mut self, ended: usize, jobs: usize);

    /// A real clock in microseconds since any time, to measure the policy.
    fn clock_us(&mut self) -> u64;
}
