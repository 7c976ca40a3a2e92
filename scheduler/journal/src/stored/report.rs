//! The reports of workers that enter the journal.

use cohabit_types::{self as types, AttemptId, DeviceId, HostShare, RankId, Signal, Span, Time};
use serde::{Deserialize, Serialize};
use serde_with::As;

use super::{
    StoredCheckpointResult, StoredCheckpointSource, StoredCondition, StoredDeviceUsage, StoredEnforcement,
    StoredHostShare, StoredOutcome, StoredProgress, StoredStopReason,
};
use crate::shape::shape_of;

/// The skipped reports never enter a journal (see [`is_journaled`](crate::is_journaled)): encoding one fails.
#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Report")]
pub(crate) enum StoredReport {
    Started {
        rank: RankId,
        at: Time,
    },
    Ended {
        rank: RankId,
        #[serde(with = "As::<StoredOutcome>")]
        outcome: types::Outcome,
        #[serde(with = "As::<Option<StoredStopReason>>", default, skip_serializing_if = "Option::is_none")]
        stopped: Option<types::StopReason>,
        #[serde(with = "As::<Option<StoredProgress>>", default, skip_serializing_if = "Option::is_none")]
        progress: Option<types::Progress>,
        at: Time,
        #[serde(with = "As::<Vec<StoredDeviceUsage>>", default, skip_serializing_if = "Vec::is_empty")]
        usage: Vec<types::DeviceUsage>,
    },
    #[serde(skip)]
    Progress(Vec<types::AttemptProgress>),
    Sharing {
        rank: RankId,
        #[serde(with = "As::<StoredEnforcement>")]
        enforcement: types::Enforcement,
    },
    PrivateUser {
        rank: RankId,
        uid: u32,
    },
    Condition {
        device: DeviceId,
        #[serde(with = "As::<StoredCondition>")]
        condition: types::Condition,
    },
    #[serde(skip)]
    Telemetry(Vec<types::DeviceTelemetry>),
    #[serde(skip)]
    ColocationSamples(Vec<types::ColocationSample>),
    Stalled {
        attempt: AttemptId,
        quiet_for: Span,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u64>,
    },
    #[serde(skip)]
    Usage(Vec<types::RankUsage>),
    Idle {
        attempt: AttemptId,
        since: Time,
        quiet_for: Span,
    },
    Active(AttemptId),
    SignalSent {
        attempt: AttemptId,
        signal: Signal,
    },
    Checkpoints {
        attempt: AttemptId,
        #[serde(with = "As::<StoredCheckpointSource>")]
        source: types::CheckpointSource,
        #[serde(with = "As::<StoredCheckpointResult>")]
        result: types::CheckpointResult,
    },
    Allotted {
        attempt: AttemptId,
        #[serde(with = "As::<StoredHostShare>")]
        host: HostShare,
    },
}

shape_of! {
    StoredReport => types::Report,
}
