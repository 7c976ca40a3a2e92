//! What a worker tells the head.

use serde::{Deserialize, Serialize};

use crate::{Outcome, Progress, ProgressOf, RankId, StopReason, Time};

/// From worker to head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// The rank's process runs.
    Started {
        /// Which rank.
        rank: RankId,
        /// By the worker's clock.
        at: Time,
    },
    /// The rank ended. Sent again until it is acknowledged.
    Ended {
        /// Which rank.
        rank: RankId,
        /// How.
        outcome: Outcome,
        /// Why it was being stopped, if it was.
        stopped: Option<StopReason>,
        /// The last that was heard of it.
        progress: Option<Progress>,
        /// By the worker's clock.
        at: Time,
    },
    /// Where the attempts on this worker stand: one batch for each heartbeat. Not journaled.
    Progress(Vec<ProgressOf>),
}
