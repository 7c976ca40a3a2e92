//! Serialises an `Arc<T>` as its `T`: use with `#[serde(with = ...)]`.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Serialises the value.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: Serialize, S: Serializer>(held: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    held.as_ref().serialize(serializer)
}

/// Deserialises the value into an `Arc` of its own.
///
/// # Errors
/// Those of the deserializer.
pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<T>, D::Error> {
    T::deserialize(deserializer).map(Arc::new)
}
