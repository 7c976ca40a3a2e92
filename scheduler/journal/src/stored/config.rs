//! The settings of the head.

use cohabit_scheduler_core as core;
use cohabit_types::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "core::Config")]
pub(crate) struct StoredConfig {
    lost_after: Span,
    retention: Span,
    /// Releases without an archive kept everything for the retention, however long.
    #[serde(default = "never", skip_serializing_if = "is_never")]
    archive_after: Span,
    node_failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_running_jobs: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    fair_share: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_stop: Option<Span>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    succession: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    prefetch: Span,
}

fn is_zero(span: &Span) -> bool {
    *span == Span::ZERO
}

const fn never() -> Span {
    Time::NEVER.since(Time::EPOCH)
}

fn is_never(span: &Span) -> bool {
    *span == never()
}

shape_of! {
    StoredConfig => core::Config,
}
