//! Hooks of the head daemon around the core: the part of the daemon that is not state.
//!
//! They fill in estimates at submission, measure planning time, and observe the end of every job. Apart from
//! the estimates, nothing that they do may change what the head decides.

use cohabit_types::{AttemptId, Estimate, JobRecord, JobSpec, Time};

use crate::program::SimProgram;

/// The hooks of a head daemon.
pub(crate) trait HeadHooks {
    /// The estimate for a job that this user submits.
    fn estimate(&mut self, now: Time, user: &str, spec: &JobSpec) -> Option<Estimate>;

    /// The policy begins to plan.
    fn planning_started(&mut self) {}

    /// The policy has planned.
    fn planning_finished(&mut self) {}

    /// A gang was placed where it reaches this fraction of its best speed.
    fn gang_placed(&mut self, attempt: AttemptId, speed: f64) {
        let _ = (attempt, speed);
    }

    /// A job, or an array as a whole, has ended.
    fn job_ended(&mut self, record: &JobRecord) {
        let _ = record;
    }
}

/// Estimates every job exactly, from its program.
pub(crate) struct ExactEstimator;

impl HeadHooks for ExactEstimator {
    fn estimate(&mut self, _: Time, _: &str, spec: &JobSpec) -> Option<Estimate> {
        Some(true_estimate(spec))
    }
}

/// The true values of a job.
pub(crate) fn true_estimate(spec: &JobSpec) -> Estimate {
    let program = SimProgram::of(spec);
    Estimate {
        iterations: Some(program.steps),
        runtime: Some(program.solo_duration),
        gpu_memory: program.gpu_memory,
        basis: "what its program says".into(),
    }
}
