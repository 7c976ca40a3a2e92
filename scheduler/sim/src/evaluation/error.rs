//! Why an evaluation came to nothing.

use cohabit_policy::PolicyParseError;

use crate::failure::SimFailure;

/// Why an evaluation came to nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvaluationError {
    /// The policy's name, or one of its parameters, makes no sense.
    #[error(transparent)]
    Policy(#[from] PolicyParseError),
    /// Nothing to do.
    #[error("there are no jobs to evaluate a policy on")]
    NoJobs,
    /// The head refused a job.
    #[error("job {job} was refused: {why}; leave it out or give the cluster what it needs")]
    Refused {
        /// Its position in the order of submission, from 0.
        job: usize,
        /// What the head said.
        why: String,
    },
    /// A promise of the production code broke: a bug.
    #[error("the simulated cluster failed: {0}")]
    Failed(#[from] SimFailure),
}
