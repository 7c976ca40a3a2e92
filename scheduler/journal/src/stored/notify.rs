//! What users ask to be told, and the kinds of events.

use cohabit_types as types;
use serde::{Deserialize, Serialize};
use serde_with::As;

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::NotifyRequest")]
pub(crate) struct StoredNotifyRequest {
    #[serde(with = "As::<StoredFeedKind>")]
    event: types::FeedKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::FeedKind", rename_all = "kebab-case")]
pub(crate) enum StoredFeedKind {
    Start,
    End,
    Fail,
    Timeout,
    #[serde(rename = "oom")]
    OutOfMemory,
    Stall,
    Idle,
    Requeue,
    Reclaim,
    NodeLost,
    NodeBack,
    GpuFenced,
    GpuBack,
}

shape_of! {
    StoredNotifyRequest => types::NotifyRequest,
    StoredFeedKind => types::FeedKind,
}
