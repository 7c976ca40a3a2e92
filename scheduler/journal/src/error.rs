//! Why an entry or a snapshot cannot be decoded.

use crate::format::FORMAT;

/// Why an entry or a snapshot cannot be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalDecodeError {
    /// It has a format that this version does not know.
    #[error("it has format {found}, but this version reads formats 1 to {FORMAT}")]
    UnknownFormat {
        /// The format that was found.
        found: u32,
    },
    /// It is not what its format says.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}
