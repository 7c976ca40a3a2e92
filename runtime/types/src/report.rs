//! Reports of a worker to the head.

use serde::{Deserialize, Serialize};

use crate::{
    AttemptId, AttemptProgress, CheckpointResult, CheckpointSource, ColocationSample, Condition, DeviceId,
    DeviceTelemetry, DeviceUsage, Enforcement, HostShare, Outcome, Progress, RankId, RankUsage, Signal, Span,
    StopReason, Time,
};

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
        /// What it did with its GPUs, as far as that was measured.
        usage: Vec<DeviceUsage>,
    },
    /// The progress of the attempts on this worker: one batch for each heartbeat. Not journaled.
    Progress(Vec<AttemptProgress>),
    /// Whether the limits of a rank that shares its device are enforced. Sent again over each new link.
    Sharing {
        /// Which rank.
        rank: RankId,
        /// Whether they are.
        enforcement: Enforcement,
    },
    /// The rank's user has no account on the node: it runs as this user, which nobody else is. Sent again
    /// over each new link.
    PrivateUser {
        /// Which rank.
        rank: RankId,
        /// The number of that user.
        uid: u32,
    },
    /// The condition of a device changed.
    Condition {
        /// Which device.
        device: DeviceId,
        /// How it is now.
        condition: Condition,
    },
    /// Readings of the GPUs of this worker: one batch each time. Not journaled.
    Telemetry(Vec<DeviceTelemetry>),
    /// Samples of co-located ranks. Not journaled, but kept in the history.
    ColocationSamples(Vec<ColocationSample>),
    /// What ranks have done with their GPUs so far: one batch each minute. Not journaled.
    Usage(Vec<RankUsage>),
    /// The GPUs of the ranks of an attempt on this worker have done nothing for
    /// [`IDLE_WARNING`](crate::IDLE_WARNING). Of an attempt on several workers the one with rank 0 reports.
    /// Sent once for each stretch, and again over each new link while it lasts.
    Idle {
        /// Which attempt.
        attempt: AttemptId,
        /// Since when, by the worker's clock. Tells one stretch from another.
        since: Time,
        /// The time since then.
        quiet_for: Span,
    },
    /// An attempt that was reported idle does something again. Of one that is interactive it is also sent
    /// over each new link while it does something.
    Active(AttemptId),
    /// An attempt has reported no step for longer than its stall timeout. Sent once for each stall, and again
    /// over each new link while it lasts.
    Stalled {
        /// Which attempt.
        attempt: AttemptId,
        /// The time without a new step.
        quiet_for: Span,
        /// The latest step, if there was one.
        step: Option<u64>,
    },
    /// The worker sent this signal to the processes of an attempt, to stop it. Lost with the link.
    SignalSent {
        /// Which attempt.
        attempt: AttemptId,
        /// Which signal.
        signal: Signal,
    },
    /// What the ranks of an attempt have found here of the checkpoints that were on another node. Sent before
    /// they start, and again over each new link.
    Checkpoints {
        /// Which attempt.
        attempt: AttemptId,
        /// Where they were.
        source: CheckpointSource,
        /// What came of them.
        result: CheckpointResult,
    },
    /// What the ranks of an attempt may use together here since an [`Order::Allot`](crate::Order::Allot): as
    /// ordered, or what is in force still where it could not be changed.
    Allotted {
        /// Which attempt.
        attempt: AttemptId,
        /// The limits that are in force.
        host: HostShare,
    },
}
