//! Hooks of the head daemon around the core: the part of the daemon that is not state.
//!
//! They fill in estimates at submission, learn interference from samples and misfits, measure planning time,
//! and observe the end of every job. Apart from estimates and knowledge of interference, nothing that they do
//! may change what the head decides.

use cohabit_policy::interference::InterferenceContext;
use cohabit_scheduler_core::{Head, MemoryMisfit};
use cohabit_types::{AttemptId, ColocationSample, Estimate, JobRecord, JobSpec, Time};

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

    /// Workers have reported these samples of co-located ranks. Returns what policies know of interference
    /// from now on, if that has changed.
    fn colocation_samples(
        &mut self,
        now: Time,
        samples: &[ColocationSample],
        head: &Head,
    ) -> Option<InterferenceContext> {
        let _ = (now, samples, head);
        None
    }

    /// A rank found no memory left. Returns what policies know of interference from now on, if that has
    /// changed.
    fn misfit(&mut self, now: Time, misfit: &MemoryMisfit, head: &Head) -> Option<InterferenceContext> {
        let _ = (now, misfit, head);
        None
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
