//! Parts of snapshots in the file: JSON, which is compressed since format 5.

use std::borrow::Cow;

use cohabit_journal::JournalDecodeError;
use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSqlOutput, ValueRef};

/// LZ4 never shrinks a text more than this many times. A larger length is a lie that would cost memory.
const LARGEST_RATIO: usize = 255;

/// A part of a snapshot, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EncodedPart {
    /// Formats 1 to 4: text.
    Plain(String),
    /// LZ4, with the length of the text before it.
    Compressed(Vec<u8>),
}

/// Why a part cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PartDecodeError {
    #[error("it is shorter than its header says")]
    TooShort,
    #[error(transparent)]
    Compression(#[from] lz4_flex::block::DecompressError),
    #[error(transparent)]
    Content(#[from] JournalDecodeError),
}

impl EncodedPart {
    /// Compresses the JSON of a part.
    pub(crate) fn of(text: &[u8]) -> EncodedPart {
        EncodedPart::Compressed(lz4_flex::block::compress_prepend_size(text))
    }

    /// The JSON of the part.
    pub(crate) fn text(&self) -> Result<Cow<'_, [u8]>, PartDecodeError> {
        match self {
            EncodedPart::Plain(text) => Ok(text.as_bytes().into()),
            EncodedPart::Compressed(bytes) => {
                let (length, block) = lz4_flex::block::uncompressed_size(bytes)?;
                if length > block.len().saturating_mul(LARGEST_RATIO) {
                    return Err(PartDecodeError::TooShort);
                }
                Ok(lz4_flex::block::decompress(block, length)?.into())
            }
        }
    }
}

impl ToSql for EncodedPart {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            EncodedPart::Plain(text) => text.to_sql(),
            EncodedPart::Compressed(bytes) => bytes.to_sql(),
        }
    }
}

impl FromSql for EncodedPart {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<EncodedPart> {
        match value {
            ValueRef::Text(_) => String::column_result(value).map(EncodedPart::Plain),
            ValueRef::Blob(_) => Vec::column_result(value).map(EncodedPart::Compressed),
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => Err(FromSqlError::InvalidType),
        }
    }
}
