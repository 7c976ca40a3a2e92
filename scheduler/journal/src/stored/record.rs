//! The record of an ended job: the column `record` of the history.
//!
//! People query that column, so its names never change.

use std::collections::BTreeMap;

use cohabit_types::{self as types, Bytes, DeviceId, JobId, Share, Signal, Slowdown, Span, Time};
use serde::{Deserialize, Serialize};
use serde_with::{As, Same};

use super::{
    StoredCodeSnapshot, StoredDemand, StoredEnforcement, StoredHostShare, StoredJobState, StoredOutcome,
    StoredOutputFiles, StoredProgress, StoredReasonCode, StoredStopReason, StoredSweep,
};
use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::JobRecord")]
pub(crate) struct StoredJobRecord {
    id: JobId,
    name: String,
    user: String,
    group: Option<String>,
    #[serde(with = "As::<StoredJobState>")]
    state: types::JobState,
    #[serde(with = "As::<StoredReasonCode>")]
    reason_code: types::ReasonCode,
    reason: String,
    work: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shell_command: Option<String>,
    #[serde(with = "As::<StoredDemand>")]
    demand: types::Demand,
    priority: i32,
    time_limit: Option<Span>,
    workdir: String,
    #[serde(with = "As::<Option<StoredCodeSnapshot>>", default, skip_serializing_if = "Option::is_none")]
    code: Option<types::CodeSnapshot>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    application: Option<JobId>,
    attempt: u32,
    #[serde(with = "As::<Vec<StoredAttemptRecord>>")]
    attempts: Vec<types::AttemptRecord>,
    exit_code: Option<i32>,
    signal: Option<Signal>,
    submitted_at: Time,
    started_at: Option<Time>,
    ended_at: Option<Time>,
    sharing_with: Vec<JobId>,
    #[serde(with = "As::<StoredTrainingSpec>", default)]
    trained: types::TrainingSpec,
    #[serde(with = "As::<Option<StoredJobPrediction>>", default)]
    predicted: Option<types::JobPrediction>,
    #[serde(default)]
    slowdown_measured: Option<Slowdown>,
    #[serde(with = "As::<Option<StoredProgress>>", default)]
    progress: Option<types::Progress>,
    #[serde(with = "As::<Option<StoredArraySummary>>", default)]
    array: Option<types::ArraySummary>,
    revision: u64,
    #[serde(with = "As::<StoredJobLabels>", default, skip_serializing_if = "types::JobLabels::is_empty")]
    labels: types::JobLabels,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::JobLabels")]
pub(crate) struct StoredJobLabels {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    #[serde(with = "As::<StoredOutputFiles>", default, skip_serializing_if = "types::OutputFiles::is_empty")]
    output: types::OutputFiles,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    #[serde(with = "As::<Option<StoredSweep>>", default, skip_serializing_if = "Option::is_none")]
    sweep: Option<types::Sweep>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::AttemptRecord")]
pub(crate) struct StoredAttemptRecord {
    attempt: u32,
    started_at: Time,
    ended_at: Option<Time>,
    #[serde(with = "As::<Option<StoredStopReason>>", default)]
    stopped: Option<types::StopReason>,
    #[serde(with = "As::<Vec<StoredRankRecord>>")]
    ranks: Vec<types::RankRecord>,
    #[serde(with = "As::<Vec<StoredHostShare>>", default, skip_serializing_if = "Vec::is_empty")]
    host: Vec<types::HostShare>,
    /// Only of attempts that run, of which no record is stored.
    #[serde(skip)]
    idle: Option<types::IdleRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::RankRecord")]
pub(crate) struct StoredRankRecord {
    node: String,
    devices: Vec<DeviceId>,
    share: Share,
    #[serde(with = "As::<Option<StoredOutcome>>", default)]
    outcome: Option<types::Outcome>,
    #[serde(with = "As::<Option<StoredEnforcement>>", default)]
    enforcement: Option<types::Enforcement>,
    #[serde(default)]
    gpu_memory: Option<Bytes>,
    #[serde(with = "As::<Option<StoredEnforcement>>", default)]
    host_limits: Option<types::Enforcement>,
    #[serde(default)]
    private_uid: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::TrainingSpec")]
pub(crate) struct StoredTrainingSpec {
    model: Option<String>,
    batch_size: Option<u64>,
    #[serde(default)]
    precision: Option<String>,
    replicas: Vec<u32>,
    iterations: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::JobPrediction")]
pub(crate) struct StoredJobPrediction {
    iterations: Option<u64>,
    runtime: Option<Span>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    runtime_between: Option<[Span; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    runs: Option<u32>,
    #[serde(default)]
    slowdown: Option<Slowdown>,
    #[serde(default)]
    gpu_memory: Option<Bytes>,
    starts_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    starts_between: Option<[Time; 2]>,
    ends_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends_between: Option<[Time; 2]>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ArraySummary")]
pub(crate) struct StoredArraySummary {
    members: u64,
    #[serde(with = "As::<BTreeMap<StoredJobState, Same>>")]
    states: BTreeMap<types::JobState, u64>,
}

shape_of! {
    StoredJobRecord => types::JobRecord,
    StoredAttemptRecord => types::AttemptRecord,
    StoredRankRecord => types::RankRecord,
    StoredTrainingSpec => types::TrainingSpec,
    StoredJobPrediction => types::JobPrediction,
    StoredArraySummary => types::ArraySummary,
    StoredJobLabels => types::JobLabels,
}
