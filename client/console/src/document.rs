//! The envelope of every JSON document.

use serde::Serialize;

/// Any document: its fields, and which version of them.
#[derive(Debug, Serialize)]
pub struct VersionedDocument<T> {
    schema: u32,
    #[serde(flatten)]
    content: T,
}

/// The first version of this document.
pub const fn with_schema<T>(content: T) -> VersionedDocument<T> {
    VersionedDocument { schema: 1, content }
}
