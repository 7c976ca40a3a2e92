//! SHA-256 digests as text, for the files of a head: 64 hexadecimal digits.

use cohabit_types::hex::{from_hex, to_hex};
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(digest: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&to_hex(digest))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 32], D::Error> {
    let text = String::deserialize(from)?;
    from_hex(&text).ok_or_else(|| serde::de::Error::custom("a digest has 64 hexadecimal digits"))
}
