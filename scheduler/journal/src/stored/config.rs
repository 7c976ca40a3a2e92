//! The settings of the head.

use cohabit_scheduler_core as core;
use cohabit_types::Span;
use serde::{Deserialize, Serialize};

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "core::Config")]
pub(crate) struct StoredConfig {
    lost_after: Span,
    retention: Span,
    node_failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_running_jobs: Option<u64>,
}

shape_of! {
    StoredConfig => core::Config,
}
