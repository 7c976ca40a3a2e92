//! The time of this machine, for messages and for how old an entry is.

use std::time::SystemTime;

use cohabit_client::types::Time;

/// Now, by the clock of this machine.
pub(crate) fn wall_clock() -> Time {
    Time::from(SystemTime::now())
}

/// RFC 3339 in UTC, in whole seconds. A time that no calendar holds is written as its microseconds.
pub(crate) fn rfc3339(time: Time) -> String {
    let seconds = i64::try_from(time.as_micros() / 1_000_000).ok();
    let stamp = seconds.and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    stamp.map_or_else(|| time.as_micros().to_string(), |stamp| stamp.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(rfc3339(Time::from_micros(1_767_225_600_900_000)), "2026-01-01T00:00:00Z");
        assert_eq!(rfc3339(Time::NEVER), Time::NEVER.as_micros().to_string());
    }
}
