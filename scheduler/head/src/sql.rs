//! Errors of the journal's file, for the journal and for the history in the same file.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use cohabit_journal::{FORMAT, JournalDecodeError};
use nix::errno::Errno;
use rusqlite::{Connection, ErrorCode};

use crate::HeadError;
use crate::journal_failure::JournalFailure;

/// For `map_err`: tells damage from other failures of SQLite.
pub(crate) fn sqlite_error(path: &Path) -> impl FnOnce(rusqlite::Error) -> HeadError + '_ {
    move |source| failure(path, source, None)
}

/// The same for a failure of this connection, which knows the operating system's error.
pub(crate) fn sqlite_error_of<'a>(
    path: &'a Path,
    connection: &'a Connection,
) -> impl FnOnce(rusqlite::Error) -> HeadError + 'a {
    move |source| failure(path, source, last_system_error(connection))
}

fn failure(path: &Path, sqlite: rusqlite::Error, known: Option<io::Error>) -> HeadError {
    let reopened = || OpenOptions::new().read(true).append(true).open(path).err();
    let system = match sqlite.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            return corrupt(path, sqlite.to_string());
        }
        // SQLite keeps the number of every other error.
        Some(ErrorCode::DiskFull) => Some(Errno::ENOSPC.into()),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => known.or_else(reopened),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => reopened(),
        Some(_) | None => None,
    };
    HeadError::Journal { path: path.to_owned(), source: JournalFailure { sqlite, system } }
}

/// The operating system's error behind the last failure of this connection to read, write or open a file.
#[expect(unsafe_code, reason = "see the note at the call")]
fn last_system_error(connection: &Connection) -> Option<io::Error> {
    // SAFETY: the handle is of a connection that is open, and it is only used for this call.
    let errno = unsafe { rusqlite::ffi::sqlite3_system_errno(connection.handle()) };
    (errno != 0).then(|| io::Error::from_raw_os_error(errno))
}

/// The journal is damaged: what was found.
pub(crate) fn corrupt(path: &Path, what: impl Into<String>) -> HeadError {
    HeadError::Corrupt { path: path.to_owned(), what: what.into() }
}

/// A part of the journal, such as `event 12`, cannot be decoded: a newer version wrote it, or it is damaged.
pub(crate) fn undecodable(path: &Path, part: &str, error: &JournalDecodeError) -> HeadError {
    if let JournalDecodeError::UnknownFormat { found } = *error
        && found > FORMAT
    {
        let what = format!("{part} of the journal {}", path.display());
        return HeadError::Newer { what, found, known: FORMAT };
    }
    corrupt(path, format!("{part} cannot be read: {error}"))
}

/// For `map_err`: a value without a JSON form fails the commit.
pub(crate) fn no_json(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}
