//! What a policy answers: to the head, actions; to people who ask, prospects.

use cohabit_types::{JobId, Placement, ReasonCode, Slowdown, Span, Time};
use serde::{Deserialize, Serialize};

/// The answer to a view. Actions are checked and applied in order.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What to do.
    pub actions: Vec<Action>,
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
        /// How long it is expected to run there, where there is ground for it.
        #[serde(default)]
        runtime: Option<Span>,
        /// How many times as long as alone it is expected to take there for its neighbours' sake; nothing
        /// where the policy does not look at that.
        #[serde(default)]
        slowdown: Option<Slowdown>,
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

/// What a pending job has to expect. Nobody but people asks for it, so it costs a plan nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingReason {
    /// Which job.
    pub job: JobId,
    /// Why it waits, for programs.
    pub code: ReasonCode,
    /// Why it waits: a sentence with numbers, without its full stop.
    pub why: String,
    /// The policy will not start it before then, even if there is room.
    pub not_before: Option<Time>,
    /// How long it is expected to run once it starts.
    pub runtime: Option<Span>,
}
