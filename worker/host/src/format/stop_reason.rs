//! Why a rank is stopped, in words that version 1 knows, and in fields that version 1 ignores: a job that was
//! killed was cancelled, and one that stalled was requeued. One that was reclaimed was preempted, and one
//! that did nothing was cancelled, in all versions: the head knows what it ordered. A part of an application,
//! which version 1 does not start, was cancelled, too.

use cohabit_types::StopReason;
use serde::{Deserialize, Serialize};

/// What version 1 does not know of the reason.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(super) struct AddedReasons {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    killed: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stalled: bool,
}

/// The reason as version 1 knows it, and what it does not know.
pub(super) fn split(why: StopReason) -> (StopReason, AddedReasons) {
    let added = AddedReasons { killed: why == StopReason::Killed, stalled: why == StopReason::Stalled };
    match added {
        AddedReasons { killed: true, .. } => (StopReason::Cancelled, added),
        AddedReasons { stalled: true, .. } => (StopReason::Requeued, added),
        AddedReasons { .. } if why == StopReason::Reclaimed => (StopReason::Preempted, added),
        AddedReasons { .. } if why == StopReason::Idle => (StopReason::Cancelled, added),
        AddedReasons { .. } => (why, added),
    }
}

/// The reason that was split.
pub(super) const fn join(why: StopReason, added: AddedReasons) -> StopReason {
    match added {
        AddedReasons { killed: true, .. } => StopReason::Killed,
        AddedReasons { stalled: true, .. } => StopReason::Stalled,
        AddedReasons { .. } => why,
    }
}
