//! The wall clock.

use cohabit_client::proto::Time;
use jiff::Timestamp;

/// The present, as the cluster counts time.
pub(crate) fn now() -> Time {
    Time::from_micros(u64::try_from(Timestamp::now().as_microsecond()).unwrap_or(0))
}
