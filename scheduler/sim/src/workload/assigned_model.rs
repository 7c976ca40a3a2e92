//! The model that a job trains, scaled so that the training lasts as long as the job of the trace did.

use cohabit_types::{ModelDescription, PipelineStage};

use crate::trace::TraceJob;

/// The model that a job trains, with its best iteration time.
#[derive(Clone)]
pub(super) struct AssignedModel {
    pub(super) model: ModelDescription,
    /// Time of one iteration at the best placement, in seconds.
    pub(super) pace: f64,
}

impl AssignedModel {
    /// Returns the number of iterations that take as long as the job did. If the trace gives that number, or
    /// it would be so small that rounding shows, the time of an iteration is adjusted instead, by scaling the
    /// computation and the transfers of the model.
    pub(super) fn lasting(self, job: &TraceJob) -> (u64, AssignedModel) {
        let seconds = job.duration.as_secs_f64();
        let fitting = ((seconds / self.pace).round() as u64).max(1);
        let iterations = job.iterations.unwrap_or(fitting);
        if job.iterations.is_none() && fitting >= MIN_ITERATIONS {
            return (fitting, self);
        }
        let factor = seconds / iterations as f64 / self.pace;
        (iterations, self.scaled(factor))
    }

    fn scaled(mut self, factor: f64) -> AssignedModel {
        let scale = |stage: &mut PipelineStage| {
            stage.compute_seconds *= factor;
            stage.compute_seconds_on.values_mut().for_each(|seconds| *seconds *= factor);
            stage.activation_bytes *= factor;
            stage.gradient_bytes *= factor;
        };
        self.model.stages.iter_mut().for_each(scale);
        self.pace *= factor;
        self
    }
}

/// With at least this many iterations, rounding their number is accurate enough.
const MIN_ITERATIONS: u64 = 20;
