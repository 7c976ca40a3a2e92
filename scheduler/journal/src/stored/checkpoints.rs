//! What became of the checkpoints of earlier attempts.

use cohabit_types::{self as types, Bytes};
use serde::{Deserialize, Serialize};

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::CheckpointSource")]
pub(crate) struct StoredCheckpointSource {
    attempt: u32,
    node: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::CheckpointResult", rename_all = "snake_case")]
pub(crate) enum StoredCheckpointResult {
    Carried(Bytes),
    Missing(String),
}

shape_of! {
    StoredCheckpointSource => types::CheckpointSource,
    StoredCheckpointResult => types::CheckpointResult,
}
