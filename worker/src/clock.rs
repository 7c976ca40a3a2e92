//! The worker's clock: microseconds since the Unix epoch.

use std::time::{SystemTime, UNIX_EPOCH};

use cohabit_proto::{Span, Time};

/// What time it is. A clock before 1970 reads as the epoch.
pub(crate) fn now() -> Time {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::EPOCH + Span::from(since_epoch)
}
