//! Errors of the journal's file, for the journal and for the history in the same file.

use std::path::Path;

use cohabit_journal::{FORMAT, JournalDecodeError};

use crate::HeadError;

/// For `map_err`: tells damage from other failures of SQLite.
pub(crate) fn sqlite_error(path: &Path) -> impl FnOnce(rusqlite::Error) -> HeadError + '_ {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    move |source| match source.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => corrupt(path, source.to_string()),
        Some(_) | None => HeadError::Journal { path: path.to_owned(), source },
    }
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
