//! How fast a link is, as people write it: `25g` is 25 gigabits, `300GB` is 300 gigabytes in a second.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bits in a second, in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bandwidth(pub u64);

/// A text that is no bandwidth.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a bandwidth: write bits like 25g or 100Gb/s, or bytes like 300GB/s")]
pub struct ParseBandwidthError(String);

impl Bandwidth {
    /// Bytes in a second.
    #[must_use]
    pub fn bytes_per_second(self) -> f64 {
        self.0 as f64 / 8.0
    }
}

/// In gigabits, or megabits below one.
impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bits if bits >= 1_000_000_000 => write!(f, "{} Gb/s", bits as f64 / 1e9),
            bits => write!(f, "{} Mb/s", bits as f64 / 1e6),
        }
    }
}

/// Reads `25g`, `25Gb/s`, `100Gbit/s`, `800m`, and bytes with a large B: `300GB`, `50GB/s`.
impl FromStr for Bandwidth {
    type Err = ParseBandwidthError;
    fn from_str(text: &str) -> Result<Bandwidth, ParseBandwidthError> {
        let refuse = || ParseBandwidthError(text.to_owned());
        let bare = text.trim().strip_suffix("/s").unwrap_or(text.trim());
        let (bare, bits) = match (bare.strip_suffix("bit"), bare.strip_suffix('b'), bare.strip_suffix('B')) {
            (Some(rest), _, _) | (None, Some(rest), _) => (rest, 1.0),
            (None, None, Some(rest)) => (rest, 8.0),
            (None, None, None) => (bare, 1.0),
        };
        let unit = bare.chars().last().ok_or_else(refuse)?;
        let size = match unit.to_ascii_lowercase() {
            't' => 1e12,
            'g' => 1e9,
            'm' => 1e6,
            _ => return Err(refuse()),
        };
        let digits = &bare[..bare.len() - 1];
        let amount: f64 = digits.trim().parse().map_err(|_| refuse())?;
        let speed = (amount * size * bits).round();
        if !digits.starts_with(|c: char| c.is_ascii_digit()) || !(1.0..1e18).contains(&speed) {
            return Err(refuse());
        }
        Ok(Bandwidth(speed as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_are_read_in_bits_and_bytes() {
        for (text, bits) in [
            ("25g", 25_000_000_000),
            ("25Gb/s", 25_000_000_000),
            ("100Gbit/s", 100_000_000_000),
            ("1.5 m", 1_500_000),
            ("50GB/s", 400_000_000_000),
            ("300GB", 2_400_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Bandwidth(bits)), "{text}");
        }
        for bad in ["", "g", "25", "-1g", "nang", "infg", "0g", "25x", "1e9g/s/s", "é"] {
            assert!(bad.parse::<Bandwidth>().is_err(), "{bad}");
        }
        assert_eq!(Bandwidth(25_000_000_000).to_string(), "25 Gb/s");
        assert_eq!(Bandwidth(100_000_000).to_string(), "100 Mb/s");
    }
}
