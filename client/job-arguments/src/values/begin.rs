//! `--begin`: the earliest time at which a job may start.
//!
//! The value is resolved to a point in time once, when the job is submitted.

use cohabit_client::types::{Span, Time};
use cohabit_console::duration::parse_duration;
use jiff::civil::{self, DateTime};
use jiff::{Timestamp, ToSpan as _, Zoned};

/// A begin time as written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BeginTime {
    /// A point in time with its offset: `2026-11-22T08:00:00Z`.
    At(Timestamp),
    /// A date and time in the submitter's time zone: `2026-11-22T08:00`.
    Local(DateTime),
    /// The next time at which the submitter's clock shows this: `08:00`.
    Next(civil::Time),
    /// This long after the submission: `now+1h`.
    After(Span),
}

/// Parses a begin time.
pub fn parse_begin(text: &str) -> Result<BeginTime, String> {
    if let Some(later) = text.strip_prefix("now") {
        return match later.strip_prefix('+') {
            Some(length) => parse_duration(length).map(BeginTime::After),
            None if later.is_empty() => Ok(BeginTime::After(Span::ZERO)),
            None => Err(refusal(text)),
        };
    }
    None.or_else(|| text.parse().ok().map(BeginTime::At))
        .or_else(|| text.parse().ok().filter(|_| text.contains('-')).map(BeginTime::Local))
        .or_else(|| text.parse().ok().filter(|_| text.contains(':')).map(BeginTime::Next))
        .ok_or_else(|| refusal(text))
}

fn refusal(text: &str) -> String {
    format!("'{text}' is not a start time: write for example now+1h, 08:00 or 2026-11-22T08:00:00Z")
}

impl BeginTime {
    /// The point in time, for a value that was written at `now`.
    pub fn resolve(self, now: &Zoned) -> Result<Time, String> {
        let unclear = |error: jiff::Error| format!("cannot compute the start time: {error}");
        let at = match self {
            BeginTime::After(length) => return Ok(time_of(now.timestamp()) + length),
            BeginTime::At(at) => at,
            BeginTime::Local(local) => local.to_zoned(now.time_zone().clone()).map_err(unclear)?.timestamp(),
            BeginTime::Next(clock) => next(clock, now).map_err(unclear)?.timestamp(),
        };
        Ok(time_of(at))
    }
}

fn next(clock: civil::Time, now: &Zoned) -> Result<Zoned, jiff::Error> {
    let today = now.with().time(clock).build()?;
    if today > *now { Ok(today) } else { today.checked_add(1.day()) }
}

/// Times before 1970 become 1970: both are in the past.
fn time_of(at: Timestamp) -> Time {
    Time::from_micros(u64::try_from(at.as_microsecond()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noon on a day in Berlin, an hour ahead of UTC.
    fn noon() -> Zoned {
        "2026-11-21T12:00:00+01:00[Europe/Berlin]".parse().unwrap()
    }

    fn resolved(text: &str) -> String {
        let time = parse_begin(text).unwrap().resolve(&noon()).unwrap();
        Timestamp::from_microsecond(time.as_micros() as i64).unwrap().to_string()
    }

    #[test]
    fn every_form_resolves_to_a_point_in_time() {
        assert_eq!(resolved("now+90s"), "2026-11-21T11:01:30Z");
        assert_eq!(resolved("2026-11-22T08:00:00Z"), "2026-11-22T08:00:00Z");
        assert_eq!(resolved("2026-11-22T08:00:00+05:00"), "2026-11-22T03:00:00Z");
        assert_eq!(resolved("2026-11-22T08:00"), "2026-11-22T07:00:00Z");
        assert_eq!(resolved("13:00"), "2026-11-21T12:00:00Z");
    }

    #[test]
    fn a_clock_time_that_is_past_means_tomorrow() {
        assert_eq!(resolved("08:00"), "2026-11-22T07:00:00Z");
        assert_eq!(resolved("12:00"), "2026-11-22T11:00:00Z");
    }

    #[test]
    fn other_texts_are_errors() {
        for bad in ["", "tomorrow", "25:00", "now-1h", "now1h", "2026-13-01T00:00", "12"] {
            assert!(parse_begin(bad).is_err(), "{bad}");
        }
        assert!(parse_begin("now+90").unwrap_err().contains("has no unit"));
    }
}
