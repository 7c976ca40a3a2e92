//! The name of a stored file: the SHA-256 of its content.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hex::{from_hex, to_hex};

/// The SHA-256 of a file's content, by which it is stored and fetched: 64 hexadecimal digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(pub [u8; 32]);

/// A text that is no such hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a SHA-256: it has 64 hexadecimal digits in lower case")]
pub struct ParseHashError(String);

impl ContentHash {
    /// The first digits, enough for people to tell snapshots apart.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_hex(&self.0))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

impl FromStr for ContentHash {
    type Err = ParseHashError;
    fn from_str(text: &str) -> Result<ContentHash, ParseHashError> {
        from_hex(text).map(ContentHash).ok_or_else(|| ParseHashError(text.chars().take(80).collect()))
    }
}

/// Text in JSON, bytes on links.
impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match to.is_human_readable() {
            true => to.collect_str(self),
            false => self.0.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ContentHash, D::Error> {
        if !from.is_human_readable() {
            return <[u8; 32]>::deserialize(from).map(ContentHash);
        }
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_has_one_text() {
        let hash = ContentHash([0xab; 32]);
        assert_eq!(hash.to_string(), "ab".repeat(32));
        assert_eq!(hash.short(), "abababababab");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(serde_json::to_value(hash).unwrap(), "ab".repeat(32));
        assert_eq!(serde_json::from_value::<ContentHash>("ab".repeat(32).into()).unwrap(), hash);
        for bad in ["", "ab", &"AB".repeat(32), &"zz".repeat(32), &"é".repeat(32)] {
            assert!(bad.parse::<ContentHash>().is_err(), "{bad}");
        }
    }
}
