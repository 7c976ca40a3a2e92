//! Points in time: RFC 3339 in UTC for scripts, local time for users.

use cohabit_types::Time;
use jiff::Timestamp;
use jiff::tz::TimeZone;

fn timestamp(time: Time) -> Timestamp {
    i64::try_from(time.as_micros())
        .ok()
        .and_then(|micros| Timestamp::from_microsecond(micros).ok())
        .unwrap_or(Timestamp::MAX)
}

/// For scripts: `2026-11-21T08:19:41.25Z`.
#[must_use]
pub fn rfc3339(time: Time) -> String {
    timestamp(time).to_string()
}

/// For users: `2026-11-21 09:19:41`.
#[must_use]
pub fn local_time(time: Time, zone: &TimeZone) -> String {
    timestamp(time).to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_get_utc_and_users_local_time() {
        let time = Time::from_micros(1_795_250_000_250_000);
        assert_eq!(rfc3339(time), "2026-11-21T08:33:20.25Z");
        assert_eq!(local_time(time, &TimeZone::fixed(jiff::tz::offset(2))), "2026-11-21 10:33:20");
        assert_eq!(rfc3339(Time::NEVER), Timestamp::MAX.to_string());
    }
}
