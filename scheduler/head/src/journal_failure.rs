//! Why the journal cannot be read or written, and what to do.

use std::fmt;
use std::io;

use cohabit_net::storage_remedy;
use rusqlite::ErrorCode;

/// Why SQLite failed, with the operating system's error where that is the cause.
#[derive(Debug)]
pub struct JournalFailure {
    pub(crate) sqlite: rusqlite::Error,
    pub(crate) system: Option<io::Error>,
}

impl JournalFailure {
    /// What to do, as part of a sentence.
    pub(crate) fn remedy(&self) -> &'static str {
        match (&self.system, self.sqlite.sqlite_error_code()) {
            (Some(system), _) => storage_remedy(system),
            (None, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)) => {
                "another program has locked it: close that program"
            }
            (None, Some(ErrorCode::OutOfMemory)) => "the head has no memory left: free some",
            (None, Some(_) | None) => "check the disk's free space and the file's permissions",
        }
    }
}

impl fmt::Display for JournalFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.system {
            Some(system) => write!(formatter, "{}: {system}", self.sqlite),
            None => self.sqlite.fmt(formatter),
        }
    }
}

impl std::error::Error for JournalFailure {}
