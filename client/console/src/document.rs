//! The version of JSON documents.

use serde::Serialize;

/// A document with the version of its fields.
#[derive(Debug, Serialize)]
pub struct VersionedDocument<T> {
    schema: u32,
    #[serde(flatten)]
    content: T,
}

/// Marks a document as version 1.
pub const fn with_schema<T>(content: T) -> VersionedDocument<T> {
    VersionedDocument { schema: 1, content }
}
