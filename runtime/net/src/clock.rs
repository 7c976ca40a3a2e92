//! The wall clock, read in one place. Live clusters count from the Unix epoch.

use std::time::{SystemTime, UNIX_EPOCH};

use cohabit_types::Time;

/// The present time; the epoch on a machine whose clock is before it.
pub(crate) fn now() -> Time {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::EPOCH + since_epoch.into()
}
