//! What a policy answers: actions for the head, reasons for people who ask why a job waits.

use cohabit_types::{HostShare, JobId, Placement, ReasonCode, Slowdown, Span, Time};
use serde::{Deserialize, Serialize};

/// The answer to a view. The head checks the actions in order and applies those that still fit.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The actions, in order.
    pub actions: Vec<Action>,
    /// When the policy wants to be asked again even if nothing changes.
    pub wake: Option<Time>,
}

impl Plan {
    /// The policy wants to be asked again at this time at the latest.
    pub(crate) fn wake_at(&mut self, at: Time) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
}

/// One action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Start a pending job.
    Place {
        /// The job.
        job: JobId,
        /// Its devices and, where we launch its ranks, which rank gets which.
        placement: Placement,
        /// Its expected runtime on these devices; `None` without an estimate.
        #[serde(default)]
        runtime: Option<Span>,
        /// Its expected slowdown by the jobs that share its devices; `None` where the policy does not
        /// predict any.
        #[serde(default)]
        slowdown: Option<Slowdown>,
        /// Why it starts now and there, for the job's history; may be empty.
        why: String,
    },
    /// Stop a running job by its stop sequence and queue it again.
    Preempt {
        /// The job.
        job: JobId,
        /// Why, for the job's history.
        why: String,
    },
    /// The same because its devices are due to somebody else by fair share.
    Reclaim {
        /// The job.
        job: JobId,
        /// Why, for the job's history.
        why: String,
    },
    /// Stop a running job that does nothing, for good, because another one waits for its place.
    StopIdle {
        /// The job.
        job: JobId,
        /// Why, for the job's history.
        why: String,
    },
    /// Change the cores and the host memory of a running job that gives a range of them. More than before is
    /// given only if it is free.
    Allot {
        /// The job.
        job: JobId,
        /// What it has from now on.
        host: HostShare,
        /// Why, for the job's history; may be empty.
        why: String,
    },
}

/// Why a pending job waits. It is computed only when a person asks, so it costs a plan nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingReason {
    /// The job.
    pub job: JobId,
    /// The reason code, for programs.
    pub code: ReasonCode,
    /// The reason as a sentence with numbers, without a full stop at its end.
    pub why: String,
    /// The policy does not start the job before then, even if resources are free.
    pub not_before: Option<Time>,
    /// Its expected runtime once it starts.
    pub runtime: Option<Span>,
}
