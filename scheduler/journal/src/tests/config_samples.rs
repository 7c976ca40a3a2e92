//! What heads are configured with.

use cohabit_scheduler_core::Config;
use cohabit_types::{Span, Time};

/// Settings that the oldest heads had, too.
pub(super) fn config() -> Config {
    Config {
        lost_after: Span::from_secs(300),
        retention: Span::from_secs(86_400),
        archive_after: Time::NEVER.since(Time::EPOCH),
        node_failures: 5,
        max_running_jobs: None,
        fair_share: false,
        idle_stop: None,
        succession: false,
        prefetch: Span::ZERO,
    }
}
