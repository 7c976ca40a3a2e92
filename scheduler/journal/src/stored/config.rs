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
}

shape_of! {
    StoredConfig => core::Config,
}
