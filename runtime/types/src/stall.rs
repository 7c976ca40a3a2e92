//! When a job that reports no step any more counts as stalled, and what follows.

use serde::{Deserialize, Serialize};

use crate::Span;

/// When a running job counts as stalled, and what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StallPolicy {
    /// The time without a new step, counted from the latest step of the attempt, or from its start.
    pub timeout: Span,
    /// What follows.
    pub action: StallAction,
}

/// What happens to a stalled job.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StallAction {
    /// Its history says so, once for each stall; it goes on.
    #[default]
    Warn,
    /// Its attempt is stopped, and the job queued again.
    Requeue,
}
