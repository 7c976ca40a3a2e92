//! A copy of the journal as of one moment, also while a head writes it.
//!
//! `VACUUM INTO` reads within one transaction. In a write-ahead log readers and writers do not wait for each
//! other, so the head commits on; only its log grows for as long as the copy takes. The copy is compact, and
//! it is replayed: a backup that cannot be replayed is none.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::HeadError;
use crate::journal::{SqliteJournal, check_log};
use crate::recovery::recover;
use crate::sql::sqlite_error;
use crate::state_dir::StateDir;

/// How long the copy waits for a program that holds the file's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// What a copy of a journal holds.
pub(super) struct CopiedJournal {
    pub(super) cluster: String,
    /// The format of its file.
    pub(super) format: u32,
    pub(super) last_job: u64,
    pub(super) jobs: u64,
}

/// Copies the journal of this state directory into a new file.
pub(super) fn copy_journal(state: &Path, to: &Path) -> Result<CopiedJournal, HeadError> {
    let path = StateDir::journal_in(state);
    let created = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    created.map_err(HeadError::state(to))?;
    let source = open(state, &path)?;
    source.execute("VACUUM INTO ?1", [to.to_string_lossy()]).map_err(sqlite_error(&path))?;
    drop(source);
    let copy = Connection::open(to).map_err(sqlite_error(to))?;
    let format = copy.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(sqlite_error(to))?;
    drop(copy);
    let journal = SqliteJournal::open(to)?;
    let recovered = recover(&path, &journal, |_| ())?;
    Ok(CopiedJournal {
        cluster: journal.cluster_id()?,
        format,
        last_job: recovered.head.last_number(),
        jobs: recovered.head.job_count() as u64,
    })
}

/// A connection that changes nothing. Where no head uses the journal, its log is looked at first: SQLite
/// would drop what is behind damage in it.
fn open(state: &Path, path: &Path) -> Result<Connection, HeadError> {
    let lock = match StateDir::lock_existing(state) {
        Ok(lock) => {
            check_log(path)?;
            Some(lock)
        }
        Err(HeadError::InUse { .. }) => None,
        Err(error) => return Err(error),
    };
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(sqlite_error(path))?;
    let opened = (|| {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, u64>(0))
    })();
    opened.map_err(sqlite_error(path))?;
    // A head may start from here on.
    drop(lock);
    Ok(connection)
}
