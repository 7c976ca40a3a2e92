//! The events in a job's history.

use cohabit_types::{
    self as types, AttemptId, Bytes, DeviceId, HostShare, JobId, PlanRequestId, RankId, Share, Signal, Span,
    Time,
};
use serde::{Deserialize, Serialize};
use serde_with::As;

use super::{
    StoredCheckpointResult, StoredCheckpointSource, StoredEnforcement, StoredHostShare, StoredJobState,
    StoredOutcome, StoredReasonCode, StoredStopReason,
};
use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::JobEvent")]
pub(crate) struct StoredJobEvent {
    at: Time,
    #[serde(with = "As::<StoredCause>")]
    cause: types::Cause,
    #[serde(rename = "happening", with = "As::<StoredJobEventKind>")]
    kind: types::JobEventKind,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Cause", rename_all = "snake_case")]
pub(crate) enum StoredCause {
    User(String),
    Plan(PlanRequestId),
    Node(String),
    Job(JobId),
    Clock,
    Restart,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::JobEventKind", rename_all = "snake_case")]
pub(crate) enum StoredJobEventKind {
    Submitted,
    Held,
    Released,
    Updated(String),
    Placed {
        attempt: AttemptId,
        nodes: Vec<String>,
        devices: Vec<DeviceId>,
        share: Share,
        waited: Span,
        why: String,
    },
    Started(RankId),
    Shares {
        rank: RankId,
        #[serde(with = "As::<StoredEnforcement>")]
        enforcement: types::Enforcement,
    },
    PrivateUser {
        rank: RankId,
        account: String,
        uid: u32,
    },
    Allotted {
        attempt: AttemptId,
        #[serde(with = "As::<StoredHostShare>")]
        from: HostShare,
        #[serde(with = "As::<StoredHostShare>")]
        to: HostShare,
        why: String,
    },
    Stalled {
        attempt: AttemptId,
        quiet_for: Span,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
    },
    Idle {
        attempt: AttemptId,
        since: Time,
        quiet_for: Span,
    },
    SignalSent {
        attempt: AttemptId,
        signal: Signal,
    },
    Checkpoints {
        attempt: AttemptId,
        node: String,
        #[serde(with = "As::<StoredCheckpointSource>")]
        source: types::CheckpointSource,
        #[serde(with = "As::<StoredCheckpointResult>")]
        result: types::CheckpointResult,
    },
    Stopping(AttemptId, #[serde(with = "As::<StoredStopReason>")] types::StopReason),
    RankEnded {
        rank: RankId,
        #[serde(with = "As::<StoredOutcome>")]
        outcome: types::Outcome,
    },
    NodeUnreachable {
        node: String,
        #[serde(rename = "patience")]
        lost_after: Span,
    },
    Adopted(AttemptId),
    AttemptLost {
        attempt: AttemptId,
        detail: String,
    },
    Requeued {
        attempt: AttemptId,
        pause: Span,
        failures: u32,
        limit: u32,
        #[serde(with = "As::<Option<StoredStopReason>>", default)]
        why: Option<types::StopReason>,
    },
    StaleReport(RankId),
    PlanDropped(String),
    Ended {
        #[serde(with = "As::<StoredJobState>")]
        state: types::JobState,
        #[serde(with = "As::<StoredReasonCode>")]
        reason: types::ReasonCode,
    },
    Distrusted {
        attempt: AttemptId,
        predicted: Bytes,
        failed: Option<AttemptId>,
    },
}

shape_of! {
    StoredJobEvent => types::JobEvent,
    StoredCause => types::Cause,
    StoredJobEventKind => types::JobEventKind,
}
