//! What a policy answers.

use cohabit_proto::{JobId, Placement, ReasonCode, Time};
use serde::{Deserialize, Serialize};

/// The answer to a view. Actions are checked and applied in order.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What to do.
    pub actions: Vec<Action>,
    /// Why certain jobs wait. The head can say of any other job only how many are ahead of it.
    pub waits: Vec<Wait>,
    /// When the policy wants to be asked again even if nothing happens.
    pub wake: Option<Time>,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Start a pending job.
    Place {
        /// Which.
        job: JobId,
        /// Where.
        placement: Placement,
        /// Why there and now, for the job's story; may be empty.
        why: String,
    },
    /// Stop a running job by its stop sequence and queue it again.
    Preempt {
        /// Which.
        job: JobId,
        /// Why, for the job's story.
        why: String,
    },
}

/// Why a job waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// Which job.
    pub job: JobId,
    /// For programs.
    pub code: ReasonCode,
    /// A sentence with numbers.
    pub why: String,
}
