//! Why an evaluation failed.

use cohabit_policy::PolicyParseError;

use crate::failure::SimFailure;

/// Why an evaluation failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvaluationError {
    /// The policy's name or one of its parameters is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyParseError),
    /// There are no jobs.
    #[error("there are no jobs to evaluate")]
    NoJobs,
    /// The head refused a job.
    #[error("job {job} was refused: {why}; leave the job out or extend the cluster")]
    Refused {
        /// Its index in the order of submission, from 0.
        job: usize,
        /// The reason that the head gave.
        why: String,
    },
    /// An invariant of the production code was violated: a bug.
    #[error("the simulated cluster failed: {0}")]
    Failed(#[from] SimFailure),
}
