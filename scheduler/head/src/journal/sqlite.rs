//! The journal in a SQLite file: opened with every doubt, written with one transaction for each commit.
//!
//! Write-ahead log and `synchronous = FULL`: a commit that returned survives a loss of power. Readers of the
//! history have connections of their own and never hold it up.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cohabit_types::Time;
use rusqlite::{Connection, Transaction};

use super::schema::{APPLICATION, FORMAT, migrate};
use super::sweep::{SweepProgress, sweep};
use super::{EncodedPart, Journal, JournalContents, JournalEntry, Write, load};
use crate::{HeadError, history};

/// How long a commit waits for a person's tool that holds the file's write lock before it is tried anew.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// A journal in a file.
#[derive(Debug)]
pub(crate) struct SqliteJournal {
    path: PathBuf,
    connection: Connection,
    written: JournalPosition,
}

/// How far it is written.
#[derive(Debug, Clone, Copy)]
struct JournalPosition {
    /// The number of the last event.
    sequence: u64,
    /// The snapshot whose parts were written last; in this life of the head, for no other will go on with it.
    snapshot: Option<u64>,
    /// Whether there is something that newer snapshots made redundant.
    swept: SweepProgress,
}

impl SqliteJournal {
    /// Opens the journal, or makes an empty one where there is none. What cannot be understood stays as it
    /// is.
    pub(crate) fn open(path: &Path) -> Result<SqliteJournal, HeadError> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        options.open(path).map_err(HeadError::state(path))?;
        let mut connection = Connection::open(path).map_err(failed(path))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed(path))?;
        let found = examine(path, &connection)?;
        configure(&connection).and_then(|()| migrate(&mut connection, found)).map_err(failed(path))?;
        let sequence = load::last_sequence(&connection).map_err(failed(path))?;
        let written = JournalPosition { sequence, snapshot: None, swept: SweepProgress::Some };
        Ok(SqliteJournal { path: path.to_owned(), connection, written })
    }

    /// The number that this cluster was given when its journal was made.
    pub(crate) fn cluster_id(&self) -> Result<String, HeadError> {
        let wanted = "SELECT value FROM meta WHERE key = 'cluster_id'";
        self.connection.query_row(wanted, [], |row| row.get(0)).map_err(failed(&self.path))
    }
}

impl Journal for SqliteJournal {
    fn load(&self) -> Result<JournalContents, HeadError> {
        load::load(&self.path, &self.connection)
    }

    fn commit(&mut self, writes: &[Write]) -> Result<(), HeadError> {
        let mut written = self.written;
        let committed = (|| {
            let transaction = self.connection.transaction()?;
            for write in writes {
                apply(&transaction, write, &mut written)?;
            }
            if written.swept == SweepProgress::Some {
                written.swept = sweep(&transaction, written.snapshot)?;
            }
            transaction.commit()
        })();
        committed.map_err(failed(&self.path))?;
        self.written = written;
        Ok(())
    }
}

fn apply(
    transaction: &Transaction<'_>,
    write: &Write,
    written: &mut JournalPosition,
) -> rusqlite::Result<()> {
    match write {
        Write::Event(entry) => {
            written.sequence += 1;
            append(transaction, written.sequence, entry)
        }
        Write::Part { snapshot, number, content } => {
            (written.snapshot, written.swept) = (Some(*snapshot), SweepProgress::Some);
            keep_part(transaction, *snapshot, *number, content)
        }
        Write::Snapshot { sequence, at, parts } => {
            written.swept = SweepProgress::Some;
            keep_snapshot(transaction, *sequence, *at, *parts)
        }
        Write::Ended(record) => history::upsert(transaction, record),
        Write::Stretches(stretches) => history::insert_stretches(transaction, stretches),
        Write::Prune(before) => history::prune(transaction, *before),
    }
}

fn append(transaction: &Transaction<'_>, sequence: u64, entry: &JournalEntry) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3)")?;
    insert.execute((sequence, entry.at.as_micros(), as_json(&entry.event)?))?;
    Ok(())
}

fn keep_part(
    transaction: &Transaction<'_>,
    snapshot: u64,
    number: u32,
    content: &EncodedPart,
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached("INSERT OR REPLACE INTO parts VALUES (?1, ?2, ?3)")?;
    insert.execute((snapshot, number, content))?;
    Ok(())
}

fn keep_snapshot(transaction: &Transaction<'_>, sequence: u64, at: Time, parts: u32) -> rusqlite::Result<()> {
    let insert = "INSERT OR REPLACE INTO snapshots (sequence, at, parts) VALUES (?1, ?2, ?3)";
    transaction.execute(insert, (sequence, at.as_micros(), parts))?;
    Ok(())
}

/// JSON for a column. What cannot be said in it fails the commit.
pub(crate) fn as_json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

/// The format of the file, 0 if it is empty; or why it must not be touched.
fn examine(path: &Path, connection: &Connection) -> Result<u32, HeadError> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let format = number("user_version").map_err(failed(path))?;
    let application = number("application_id").map_err(failed(path))?;
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: u64 = connection.query_row(tables, [], |row| row.get(0)).map_err(failed(path))?;
    match u32::try_from(format) {
        Ok(0) if tables == 0 => Ok(0),
        Ok(found) if found > 0 && application == i64::from(APPLICATION) => {
            if found > FORMAT {
                return Err(HeadError::Newer { path: path.to_owned(), found, known: FORMAT });
            }
            quick_check(path, connection).map(|()| found)
        }
        Ok(_) | Err(_) => Err(corrupt(path, "it is a database, but none of Cohabit's journals")),
    }
}

fn quick_check(path: &Path, connection: &Connection) -> Result<(), HeadError> {
    let verdict: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed(path))?;
    if verdict == "ok" { Ok(()) } else { Err(corrupt(path, verdict)) }
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")
}

/// For `map_err`: damage is told from other trouble.
pub(crate) fn failed(path: &Path) -> impl FnOnce(rusqlite::Error) -> HeadError + '_ {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    move |source| match source.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => corrupt(path, source.to_string()),
        Some(_) | None => HeadError::Journal { path: path.to_owned(), source },
    }
}

pub(super) fn corrupt(path: &Path, what: impl Into<String>) -> HeadError {
    HeadError::Corrupt { path: path.to_owned(), what: what.into() }
}
