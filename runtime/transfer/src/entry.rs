//! The entries of a stream, and their bytes: four bytes of length, big end first, and the entry in the
//! codec of messages.

use std::io;

use cohabit_wire::codec::encode_into;
use serde::{Deserialize, Serialize};

use crate::path::TransferPath;

/// The most content in one entry.
pub(crate) const CONTENT_BYTES: usize = 64 << 10;

/// No entry is longer: content, or a path of the greatest depth with the longest names and a message.
pub(crate) const LONGEST_ENTRY: usize = CONTENT_BYTES + (24 << 10);

/// Bytes of the length in front of an entry.
pub(crate) const LENGTH_PREFIX: usize = 4;

/// A part of what is transferred, in this order: the extent, what was named, then what is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferEntry {
    /// What will come, as it was found at the beginning.
    Extent {
        /// How many files.
        files: u64,
        /// How many bytes they have.
        bytes: u64,
    },
    /// A directory; comes before what is in it.
    Directory {
        /// Where it is.
        path: TransferPath,
        /// Its permissions: only the nine bits count.
        mode: u32,
    },
    /// A file. Its content follows, or [`TransferEntry::Shrunk`] in place of the rest.
    File {
        /// Where it is.
        path: TransferPath,
        /// Its permissions: only the nine bits count.
        mode: u32,
        /// When it was modified, in seconds since 1970.
        modified: i64,
        /// Its number in its file system: a file with this number in its place is the same one.
        inode: u64,
        /// How many bytes it had when it was opened: it ends there, whatever was appended since.
        size: u64,
    },
    /// Bytes of the last file.
    Content(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The last file has become shorter while it was read.
    Shrunk,
    /// A symbolic link, which is not followed.
    Link {
        /// Where it is.
        path: TransferPath,
        /// What it points to.
        #[serde(with = "serde_bytes")]
        target: Vec<u8>,
    },
    /// What is in the directory, but not transferred.
    Skipped {
        /// Where it is.
        path: TransferPath,
        /// Why; follows "it".
        why: String,
    },
    /// That was all.
    End,
    /// There is no more, for this reason.
    Failed {
        /// Which kind of reason.
        kind: TransferFailure,
        /// In words.
        message: String,
    },
}

/// Why a transfer is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferFailure {
    /// There is no such file.
    NotFound,
    /// The account may not read it.
    NotAllowed,
    /// It is a directory, and only files were asked for.
    Directory,
    /// It is neither a file nor a directory.
    SpecialFile,
    /// It is larger than the limit.
    TooLarge,
    /// The disk, or the process that reads.
    Failed,
}

/// The bytes of an entry.
///
/// # Errors
/// When it is longer than an entry may be.
pub fn encode(entry: &TransferEntry) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; LENGTH_PREFIX];
    encode_into(entry, LONGEST_ENTRY, &mut bytes).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len() - LENGTH_PREFIX).map_err(io::Error::other)?;
    bytes[..LENGTH_PREFIX].copy_from_slice(&length.to_be_bytes());
    Ok(bytes)
}
