//! `report --by` and the times of `--since` and `--until`.

use cohabit_client::types::{Span, Time, UsageGrouping};
use cohabit_console::duration::parse_duration;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A time as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReportTime {
    /// A point in time: `2026-11-01`, `2026-11-01T08:00:00Z`.
    At(Time),
    /// So long ago: `30d`.
    Ago(Span),
}

impl ReportTime {
    /// The point in time, for a value that was written at `now`.
    pub(crate) fn resolve(self, now: Time) -> Time {
        match self {
            ReportTime::At(at) => at,
            ReportTime::Ago(ago) => now - ago,
        }
    }
}

/// Parses what has a row.
pub(crate) fn parse_grouping(text: &str) -> Result<UsageGrouping, String> {
    match text {
        "user" => Ok(UsageGrouping::User),
        "project" => Ok(UsageGrouping::Project),
        "project,user" | "user,project" => Ok(UsageGrouping::ProjectAndUser),
        other => Err(format!("'{other}' has no rows in a report: write user, project or project,user")),
    }
}

/// Parses a time of a report. A date is the beginning of that day in UTC, as the days of reports are.
pub(crate) fn parse_report_time(text: &str) -> Result<ReportTime, String> {
    let refuse = || {
        format!("'{text}' is no time of a report: write for example 30d, 2026-11-01 or 2026-11-01T08:00:00Z")
    };
    let date = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|day| day.timestamp());
    let at = text.parse::<Timestamp>().ok().or_else(|| date().filter(|_| text.contains('-')));
    match at {
        Some(at) => u64::try_from(at.as_microsecond())
            .map(|micros| ReportTime::At(Time::from_micros(micros)))
            .map_err(|_| format!("'{text}' is before 1970: write a later time")),
        None => parse_duration(text).map(ReportTime::Ago).map_err(|_| refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_times_and_durations_are_times() {
        let day = |days: u64| ReportTime::At(Time::from_micros(days * 86_400_000_000));
        assert_eq!(parse_report_time("1970-01-11"), Ok(day(10)));
        assert_eq!(parse_report_time("1970-01-11T01:00:00+01:00"), Ok(day(10)));
        let month = ReportTime::Ago(Span::from_secs(30 * 86_400));
        assert_eq!(parse_report_time("30d"), Ok(month));
        let now = Time::from_micros(40 * 86_400_000_000);
        assert_eq!((month.resolve(now), day(7).resolve(now)), (day(10).resolve(now), day(7).resolve(now)));
        for wrong in ["", "yesterday", "30", "2026-13-01", "1969-01-01"] {
            let refusal = parse_report_time(wrong).unwrap_err();
            assert!(refusal.contains(": write "), "{refusal}");
        }
    }

    #[test]
    fn rows_are_users_projects_or_both() {
        assert_eq!(parse_grouping("user,project"), Ok(UsageGrouping::ProjectAndUser));
        assert_eq!(
            parse_grouping("gpu").unwrap_err(),
            "'gpu' has no rows in a report: write user, project or project,user"
        );
    }
}
