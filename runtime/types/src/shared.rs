//! What several hold at once is written down as if each had its own.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes what is held.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: Serialize, S: Serializer>(held: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    held.as_ref().serialize(serializer)
}

/// Reads something that nobody else holds yet.
///
/// # Errors
/// Those of the deserializer.
pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<T>, D::Error> {
    T::deserialize(deserializer).map(Arc::new)
}
