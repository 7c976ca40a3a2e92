//! The formats in which a worker daemon and its executors write to each other, and their versions.
//!
//! Executors outlive daemons, so after an upgrade a daemon adopts executors of the previous version, and
//! after a downgrade of the next one. Everything they exchange therefore has types of its own here, converted
//! to and from the in-memory types:
//!
//! | Format | Written by | Read by |
//! |---|---|---|
//! | `start.json` | daemon | executor, later daemons |
//! | `executor.json` | executor | later daemons |
//! | `outcome.json` | executor or daemon | daemon, later daemons |
//! | JSON lines on the rank's socket | both | both |
//! | assignment datagram: the path of a rank's directory | daemon | the executors that it started |
//!
//! Rules:
//! - Each file carries [`VERSION`] as `"version"`. A file without one has version 1, and 0 is no version.
//! - Readers ignore unknown fields and pass over unknown messages. So a new optional field or a new message
//!   needs no new version. Until it has sent `started`, an executor sends only messages of version 1: daemons
//!   of version 1 give up on a rank that says anything else first.
//! - A change that an older reader would misunderstand raises [`VERSION`]. A reader refuses files with a
//!   version later than its own and names both versions ([`NewerVersion`]); a daemon that finds such a file
//!   does not start, and leaves the rank alone.
//! - `golden/vN` holds what version N wrote. Those files are never changed, and every version reads them.
//!
//! Versions:
//! 1. Has no `"version"`. Fields that were added over time may be missing.
//! 2. Adds `"version"`; no optional field of version 1 is ever missing. Daemons and executors of version 1
//!    read it as their own, so a downgrade from 2 to 1 keeps the running jobs.
//!
//! The other files of a worker, such as `node.json`, have versions of their own; whoever owns them implements
//! [`VersionedFile`] with [`decode_file`] and [`encode_json`].
//!
//! Values such as `JobSpec`, `Outcome` and `Progress` keep the JSON form that `cohabit-types` defines; the
//! golden files hold that form too.

mod identity;
mod lines;
mod outcome;
mod progress;
mod start;
mod stop_reason;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use cohabit_types::{FormatVersion, NewerVersion};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::files::{FileContext, FileError, WriteMode, read, write};
use crate::messages::{ExecutorCommand, ExecutorEvent};
use crate::records::{ExecutorRecord, OutcomeRecord, StartRecord};
pub use crate::version::VERSION;

const REMEDY: &str = "start the newer version again, or let the jobs on this worker end before a downgrade";

/// Why a file or message cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// It was written by a later version.
    #[error(transparent)]
    Newer(#[from] NewerVersion),
    /// It is not the JSON that was expected.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl From<FormatError> for io::Error {
    fn from(error: FormatError) -> io::Error {
        match error {
            FormatError::Newer(newer) => io::Error::new(io::ErrorKind::Unsupported, newer),
            FormatError::Json(error) => error.into(),
        }
    }
}

/// Content of a file with a version.
pub trait VersionedFile: Sized {
    /// The file's text in the latest version, with a newline at its end.
    fn encode(&self) -> Vec<u8>;

    /// Reads a file of any version up to the latest.
    ///
    /// # Errors
    /// When the file is of a later version, or is not such a file.
    fn decode(text: &[u8]) -> Result<Self, FormatError>;
}

/// A message that travels as one line of JSON.
pub trait JsonLine: Sized {
    /// The line, with its newline.
    fn encode(&self) -> Vec<u8>;

    /// Reads a line.
    ///
    /// # Errors
    /// When the line is damaged or carries a message of a later version; such a line is passed over.
    fn decode(line: &str) -> Result<Self, FormatError>;
}

macro_rules! versioned_file {
    ($($record:ty => $file:ty),+ $(,)?) => {$(
        impl VersionedFile for $record {
            fn encode(&self) -> Vec<u8> {
                encode_json(&<$file>::from(self))
            }

            fn decode(text: &[u8]) -> Result<$record, FormatError> {
                decode_file(text, VERSION, REMEDY, |file: &$file| file.version).map(<$record>::from)
            }
        }
    )+};
}

versioned_file! {
    StartRecord => start::StartFile<'_>,
    OutcomeRecord => outcome::OutcomeFile,
    ExecutorRecord => identity::IdentityFile,
}

macro_rules! json_line {
    ($($message:ty => $line:ty),+ $(,)?) => {$(
        impl JsonLine for $message {
            fn encode(&self) -> Vec<u8> {
                encode_json(&<$line>::from(self))
            }

            fn decode(line: &str) -> Result<$message, FormatError> {
                Ok(serde_json::from_str::<$line>(line)?.into())
            }
        }
    )+};
}

json_line! {
    ExecutorEvent => lines::EventLine,
    ExecutorCommand => lines::ExecutorCommandLine,
}

/// The content of a file of any version up to the latest; `None` if the file does not exist.
///
/// # Errors
/// When the file cannot be read, is of a later version, or is not such a file.
pub fn read_versioned<T: VersionedFile>(path: &Path) -> Result<Option<T>, FileError> {
    match read(path) {
        Ok(text) => T::decode(&text).map(Some).at("read", path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("read", path),
    }
}

/// Writes this content in the latest version.
///
/// # Errors
/// As [`write`](write()).
pub fn write_versioned<T: VersionedFile>(path: &Path, content: &T, mode: WriteMode) -> Result<(), FileError> {
    write(path, &content.encode(), mode)
}

/// The part of every file that tells its version.
#[derive(Deserialize)]
struct VersionField {
    #[serde(default, alias = "schema")]
    version: FormatVersion,
}

/// Reads a file of any version up to the latest. It is parsed once if it can be. If it cannot, the version
/// tells whether that is why: its name in the file is `version` or `schema`.
///
/// # Errors
/// When the file is of a later version, with the remedy, or is not such a file.
pub fn decode_file<F: DeserializeOwned>(
    text: &[u8],
    latest: FormatVersion,
    remedy: &'static str,
    version_of: impl Fn(&F) -> FormatVersion,
) -> Result<F, FormatError> {
    let (file, version) = match serde_json::from_slice::<F>(text) {
        Ok(file) => {
            let version = version_of(&file);
            (Ok(file), version)
        }
        Err(error) => match serde_json::from_slice(text) {
            Ok(VersionField { version }) => (Err(error), version),
            Err(_) => return Err(error.into()),
        },
    };
    version.check(latest, remedy)?;
    Ok(file?)
}

/// One line of JSON, with its newline.
///
/// # Panics
/// If a map of the value has keys that are no text, which no format has.
pub fn encode_json<T: Serialize>(value: &T) -> Vec<u8> {
    let mut text = serde_json::to_vec(value).expect("formats are plain values with text keys");
    text.push(b'\n');
    text
}
