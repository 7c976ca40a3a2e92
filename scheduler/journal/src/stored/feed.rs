//! The events of the feed.

use cohabit_types::{self as types, DeviceId, JobId, Signal, Time};
use serde::{Deserialize, Serialize};
use serde_with::As;

use super::{StoredArraySummary, StoredFeedKind, StoredJobState, StoredNotifyRequest, StoredReasonCode};
use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::FeedEvent")]
pub(crate) struct StoredFeedEvent {
    at: Time,
    #[serde(with = "As::<StoredFeedKind>")]
    kind: types::FeedKind,
    #[serde(with = "As::<Option<StoredFeedJob>>", default, skip_serializing_if = "Option::is_none")]
    job: Option<types::FeedJob>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<DeviceId>,
    text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::FeedJob")]
pub(crate) struct StoredFeedJob {
    id: JobId,
    name: String,
    user: String,
    #[serde(with = "As::<StoredJobState>")]
    state: types::JobState,
    #[serde(with = "As::<StoredReasonCode>")]
    reason_code: types::ReasonCode,
    reason: String,
    attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<Signal>,
    nodes: Vec<String>,
    #[serde(with = "As::<Option<StoredArraySummary>>", default, skip_serializing_if = "Option::is_none")]
    array: Option<types::ArraySummary>,
    submitted_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_at: Option<Time>,
    #[serde(with = "As::<Vec<StoredNotifyRequest>>", default, skip_serializing_if = "Vec::is_empty")]
    requests: Vec<types::NotifyRequest>,
}

shape_of! {
    StoredFeedEvent => types::FeedEvent,
    StoredFeedJob => types::FeedJob,
}
