//! The wall clock.

use cohabit_client::types::Time;
use jiff::Timestamp;

/// The current time, as the cluster counts it.
pub(crate) fn now() -> Time {
    Time::from_micros(u64::try_from(Timestamp::now().as_microsecond()).unwrap_or(0))
}
