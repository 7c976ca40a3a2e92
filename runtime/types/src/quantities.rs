//! Quantities: shares of a device, slowdowns and bytes, with the text forms that people write.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A part of one device in thousandths; at most [`Share::WHOLE`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Share(pub u32);

/// A slowdown factor, in thousandths: the time of a step beside other jobs, divided by its time alone. At
/// least [`Slowdown::NONE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slowdown(pub u32);

/// An amount of memory in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A text that is no quantity, with what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}")]
pub struct ParseAmountError {
    text: String,
    expected: &'static str,
}

impl Share {
    /// All of a device.
    pub const WHOLE: Share = Share(1_000);

    /// As a fraction of a device, 0 to 1.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1_000.0
    }

    /// What is left after taking `other`; nothing if it is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Share) -> Share {
        Share(self.0.saturating_sub(other.0))
    }
}

impl Add for Share {
    type Output = Share;
    fn add(self, other: Share) -> Share {
        Share(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Share) {
        *self = *self + other;
    }
}

impl Sum for Share {
    fn sum<I: Iterator<Item = Share>>(shares: I) -> Share {
        shares.fold(Share(0), Add::add)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

impl Slowdown {
    /// As fast as alone.
    pub const NONE: Slowdown = Slowdown(1_000);

    /// As a factor, at least 1.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0.max(Slowdown::NONE.0)) / 1_000.0
    }
}

/// Rounded to a thousandth; what is no slowdown is [`Slowdown::NONE`].
impl From<f64> for Slowdown {
    fn from(factor: f64) -> Slowdown {
        Slowdown((factor.max(1.0) * 1_000.0).round() as u32)
    }
}

impl fmt::Display for Slowdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

/// Reads `1.3`, and anything from 1 to 100.
impl FromStr for Slowdown {
    type Err = ParseAmountError;
    fn from_str(text: &str) -> Result<Slowdown, ParseAmountError> {
        let factor = text.trim().parse().ok().filter(|factor: &f64| (1.0..=100.0).contains(factor));
        factor.map(Slowdown::from).ok_or_else(|| ParseAmountError {
            text: text.to_owned(),
            expected: "a slowdown: a slowdown is a factor from 1 to 100, such as 1.3 (30% slower)",
        })
    }
}

impl Bytes {
    /// None.
    pub const ZERO: Bytes = Bytes(0);

    /// What is left after taking `other`; nothing if it is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(amounts: I) -> Bytes {
        amounts.fold(Bytes::ZERO, Add::add)
    }
}

/// Binary units, as `--mem 20G` is read: K, M, G and T are powers of 1,024.
const UNITS: [(&str, u64); 4] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, size)| self.0 >= *size) {
            None => write!(f, "{} B", self.0),
            Some((unit, size)) if self.0.is_multiple_of(*size) => write!(f, "{} {unit}iB", self.0 / size),
            Some((unit, size)) => write!(f, "{:.1} {unit}iB", self.0 as f64 / *size as f64),
        }
    }
}

/// Reads `20G`, `20GiB`, `512m`, `1.5T` and plain bytes.
impl FromStr for Bytes {
    type Err = ParseAmountError;
    fn from_str(text: &str) -> Result<Bytes, ParseAmountError> {
        let refuse =
            || ParseAmountError { text: text.to_owned(), expected: "an amount of memory like 20G or 512M" };
        let upper = text.trim().to_ascii_uppercase();
        let bare = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
        let (digits, size) = UNITS
            .iter()
            .find_map(|(unit, size)| Some((bare.strip_suffix(unit)?, *size)))
            .unwrap_or((bare, 1));
        let amount: f64 = digits.trim().parse().map_err(|_| refuse())?;
        if !amount.is_finite() || amount < 0.0 || digits.contains(['E', '+']) {
            return Err(refuse());
        }
        Ok(Bytes((amount * size as f64).round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_binary_units() {
        let read = |text: &str| text.parse::<Bytes>().map(|b| b.0);
        assert_eq!(read("20G"), Ok(20 << 30));
        assert_eq!(read("512MiB"), Ok(512 << 20));
        assert_eq!(read("1.5k"), Ok(1536));
        assert_eq!(read("7"), Ok(7));
        for bad in ["", "G", "-1G", "1e9", "nan", "inf", "5X"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_slowdown_is_at_least_1() {
        assert_eq!("1.3".parse(), Ok(Slowdown(1_300)));
        assert_eq!((Slowdown(1_250).to_string(), Slowdown::NONE.as_f64()), ("1.25".to_owned(), 1.0));
        for bad in ["", "0.9", "101", "nan", "inf", "x"] {
            assert!(bad.parse::<Slowdown>().is_err(), "{bad}");
        }
    }

    #[test]
    fn memory_is_shown_in_the_largest_fitting_unit() {
        assert_eq!(Bytes(20 << 30).to_string(), "20 GiB");
        assert_eq!(Bytes(1536).to_string(), "1.5 KiB");
        assert_eq!(Bytes(7).to_string(), "7 B");
    }
}
