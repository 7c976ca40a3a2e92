//! How ranks end, and how far they came.

use std::collections::BTreeMap;

use cohabit_types::{self as types, Bytes, Signal, Time};
use serde::{Deserialize, Serialize};
use serde_with::As;

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Outcome", rename_all = "snake_case")]
pub(crate) enum StoredOutcome {
    Exited(i32),
    Signalled(Signal),
    NotStarted(#[serde(with = "As::<StoredStartFailure>")] types::StartFailure),
    Lost(String),
    OutOfGpuMemory {
        code: i32,
        #[serde(rename = "said")]
        message: String,
    },
    OutOfMemory {
        code: i32,
        limit: Option<Bytes>,
        peak: Option<Bytes>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::StartFailure", rename_all = "snake_case")]
pub(crate) enum StoredStartFailure {
    CommandNotFound(String),
    NotExecutable(String),
    WorkdirMissing(String),
    DeviceMissing(String),
    Other(String),
    PortTaken(u16),
    DeviceFenced(String),
    Unenforced(String),
    #[serde(rename = "node_trouble")]
    NodeProblem(String),
    Account(String),
    OrderLost,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Progress")]
pub(crate) struct StoredProgress {
    step: u64,
    total: Option<u64>,
    rate: Option<f64>,
    metrics: BTreeMap<String, types::MetricValue>,
    at: Time,
}

shape_of! {
    StoredOutcome => types::Outcome,
    StoredStartFailure => types::StartFailure,
    StoredProgress => types::Progress,
}
