//! What stands around the production head: the part of its daemon that is not state.
//!
//! It fills in estimates at submission, looks at the clock while the policy thinks, and hears of every end.
//! Nothing it does may change what the head decides, but for the estimates that it gives.

use cohabit_types::{AttemptId, Estimate, JobRecord, JobSpec, Time};

use crate::program::SimProgram;

/// What the head's daemon does beside driving the core.
pub(crate) trait HeadHooks {
    /// What is expected of a job that this user submits.
    fn estimate(&mut self, now: Time, user: &str, spec: &JobSpec) -> Option<Estimate>;

    /// The policy begins to think.
    fn planning_started(&mut self) {}

    /// The policy has answered.
    fn planning_finished(&mut self) {}

    /// A gang was given a place where it reaches this part of its best pace.
    fn gang_placed(&mut self, attempt: AttemptId, speed: f64) {
        let _ = (attempt, speed);
    }

    /// A job, or an array as a whole, has ended.
    fn job_ended(&mut self, record: &JobRecord) {
        let _ = record;
    }
}

/// Expects of each job what its program says.
pub(crate) struct ExactEstimator;

impl HeadHooks for ExactEstimator {
    fn estimate(&mut self, _: Time, _: &str, spec: &JobSpec) -> Option<Estimate> {
        Some(true_estimate(spec))
    }
}

/// What is true of a job.
pub(crate) fn true_estimate(spec: &JobSpec) -> Estimate {
    let program = SimProgram::of(spec);
    Estimate {
        iterations: Some(program.steps),
        runtime: Some(program.solo_duration),
        gpu_memory: program.gpu_memory,
        basis: "what its program says".into(),
    }
}
