//! Model time: points and spans in whole microseconds.
//!
//! `Time` has no `now()`: cores receive it as an argument, shells read a clock once for each event. In a live
//! cluster the epoch is the Unix epoch, so that a time can be shown without knowing the cluster; in
//! simulation it is the start.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A point in time: microseconds since the cluster's epoch.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of time in microseconds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(u64);

impl Time {
    /// The cluster's epoch.
    pub const EPOCH: Time = Time(0);
    /// Later than every other time.
    pub const NEVER: Time = Time(u64::MAX);

    /// The time this many microseconds after the epoch.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros)
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        Span(self.0).as_secs_f64()
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of this many microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros)
    }

    /// A span of this many milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000))
    }

    /// A span of this many seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(1_000_000))
    }

    /// The nearest span to this many seconds; zero for negative and not-a-number, the longest span for
    /// infinity.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Span {
        Span((secs * 1e6).round() as u64)
    }

    /// Microseconds.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }
}

/// A point of the calendar as a live cluster counts it: since the Unix epoch.
impl From<std::time::SystemTime> for Time {
    fn from(at: std::time::SystemTime) -> Time {
        let since = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Time::EPOCH + Span::from(since)
    }
}

impl From<std::time::Duration> for Span {
    fn from(duration: std::time::Duration) -> Span {
        Span(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for std::time::Duration {
    fn from(span: Span) -> std::time::Duration {
        std::time::Duration::from_micros(span.0)
    }
}

/// For people: the two largest units, or milliseconds below ten seconds.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.0 / 1_000_000;
        let (days, hours, minutes) = (secs / 86_400, secs / 3_600 % 24, secs / 60 % 60);
        match () {
            () if days > 0 => write!(f, "{days} d {hours} h"),
            () if hours > 0 => write!(f, "{hours} h {minutes} min"),
            () if minutes > 0 => write!(f, "{minutes} min {} s", secs % 60),
            () if secs >= 10 => write!(f, "{secs} s"),
            () if secs > 0 => write!(f, "{:.1} s", self.as_secs_f64()),
            () => write!(f, "{} ms", self.0 / 1_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
        assert_eq!(Time::EPOCH - Span::from_secs(1), Time::EPOCH);
        assert_eq!(Time::EPOCH.since(Time::from_micros(5)), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
    }

    #[test]
    fn a_span_shows_its_two_largest_units() {
        let shown = |secs: f64| Span::from_secs_f64(secs).to_string();
        assert_eq!(shown(0.25), "250 ms");
        assert_eq!(shown(1.25), "1.2 s");
        assert_eq!(shown(61.0), "1 min 1 s");
        assert_eq!(shown(90_061.0), "1 d 1 h");
    }
}
