//! The journal in a SQLite file: checked when it is opened, one transaction for each commit.
//!
//! Write-ahead log and `synchronous = FULL`: a commit that returned survives a loss of power. Readers of the
//! history have connections of their own and never hold it up.
//!
//! A file of an older format is upgraded in a transaction that stays open until
//! [`SqliteJournal::accept_upgrade`] or the first commit, which come after recovery. If recovery fails, the
//! file stays as it was, and the release that wrote it can still open it.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cohabit_types::Time;
use rusqlite::{Connection, Transaction};

use super::encoded_part::EncodedPart;
use super::load;
use super::schema::{APPLICATION, FORMAT, migrate};
use super::store::{Journal, JournalContents, JournalEntry, JournalWrite};
use super::sweep::{SweepProgress, sweep};
use super::wal::check_log;
use crate::history::{AccountedPlace, FeedPosition};
use crate::sql::{corrupt, no_json, sqlite_error, sqlite_error_of};
use crate::{HeadError, history};

/// How long a commit waits for a person's tool that holds the file's write lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// A journal in a file.
#[derive(Debug)]
pub(crate) struct SqliteJournal {
    path: PathBuf,
    connection: Connection,
    written: JournalPosition,
    upgrade: Upgrade,
}

/// How far the journal is written.
#[derive(Debug, Clone, Copy)]
struct JournalPosition {
    /// The number of the last event.
    sequence: u64,
    /// The snapshot whose parts were written last by this process; nobody else will finish it.
    snapshot: Option<u64>,
    /// Whether there may be something that newer snapshots made redundant.
    swept: SweepProgress,
    /// How far the feed is written.
    feed: FeedPosition,
    /// How far the sums for reports go.
    accounted: AccountedPlace,
}

/// Whether the file was of an older format and its upgrade is not committed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upgrade {
    Done,
    /// The connection is inside the transaction of the upgrade.
    Pending,
}

impl SqliteJournal {
    /// Opens the journal, or creates an empty one. A file that it does not understand stays as it is.
    pub(crate) fn open(path: &Path) -> Result<SqliteJournal, HeadError> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        options.open(path).map_err(HeadError::state(path))?;
        check_log(path)?;
        let connection = Connection::open(path).map_err(sqlite_error(path))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(sqlite_error(path))?;
        let found = examine(path, &connection)?;
        let upgrade = prepare(&connection, found).map_err(sqlite_error_of(path, &connection))?;
        let sequence = load::last_sequence(&connection).map_err(sqlite_error(path))?;
        let feed = FeedPosition::read(&connection).map_err(sqlite_error(path))?;
        let accounted = AccountedPlace::read(&connection).map_err(sqlite_error(path))?;
        let swept = SweepProgress::Partial;
        let written = JournalPosition { sequence, snapshot: None, swept, feed, accounted };
        Ok(SqliteJournal { path: path.to_owned(), connection, written, upgrade })
    }

    /// Whether the file is of an older format, and its upgrade is not permanent yet.
    pub(crate) fn has_pending_upgrade(&self) -> bool {
        self.upgrade == Upgrade::Pending
    }

    /// Makes the upgrade of an older file permanent. From then on, the release that wrote it refuses the
    /// file.
    pub(crate) fn accept_upgrade(&mut self) -> Result<(), HeadError> {
        if self.upgrade == Upgrade::Pending {
            self.connection.execute_batch("COMMIT").map_err(sqlite_error(&self.path))?;
            self.upgrade = Upgrade::Done;
            configure(&self.connection).map_err(sqlite_error(&self.path))?;
        }
        Ok(())
    }

    /// Whether a replay comes to this event: it is there, and after the newest snapshot.
    pub(crate) fn has_to_replay(&self, event: u64) -> Result<bool, HeadError> {
        let wanted = "SELECT count(*) FROM events WHERE sequence = ?1 \
                      AND sequence > (SELECT ifnull(max(sequence), 0) FROM snapshots)";
        let found = self.connection.query_row(wanted, [event], |row| row.get::<_, u64>(0));
        Ok(found.map_err(sqlite_error(&self.path))? > 0)
    }

    /// The id that this cluster was given when its journal was created.
    pub(crate) fn cluster_id(&self) -> Result<String, HeadError> {
        let wanted = "SELECT value FROM meta WHERE key = 'cluster_id'";
        self.connection.query_row(wanted, [], |row| row.get(0)).map_err(sqlite_error(&self.path))
    }
}

impl Journal for SqliteJournal {
    fn load(&self) -> Result<JournalContents, HeadError> {
        load::load(&self.path, &self.connection)
    }

    fn commit(&mut self, writes: &[JournalWrite]) -> Result<(), HeadError> {
        self.accept_upgrade()?;
        let mut written = self.written;
        let committed = (|| {
            let transaction = self.connection.transaction()?;
            for write in writes {
                apply(&transaction, write, &mut written)?;
            }
            if written.swept == SweepProgress::Partial {
                written.swept = sweep(&transaction, written.snapshot)?;
            }
            transaction.commit()
        })();
        committed.map_err(sqlite_error_of(&self.path, &self.connection))?;
        self.written = written;
        Ok(())
    }
}

fn apply(
    transaction: &Transaction<'_>,
    write: &JournalWrite,
    written: &mut JournalPosition,
) -> rusqlite::Result<()> {
    match write {
        JournalWrite::Event(entry) => {
            written.sequence += 1;
            append(transaction, written.sequence, entry)
        }
        JournalWrite::Part { snapshot, number, content } => {
            (written.snapshot, written.swept) = (Some(*snapshot), SweepProgress::Partial);
            keep_part(transaction, *snapshot, *number, content)
        }
        JournalWrite::Snapshot { sequence, at, parts } => {
            written.swept = SweepProgress::Partial;
            keep_snapshot(transaction, *sequence, *at, *parts)
        }
        JournalWrite::Ended(record) => history::upsert(transaction, record),
        JournalWrite::Samples(samples) => history::insert_samples(transaction, samples),
        JournalWrite::Misfits(misfits) => history::insert_misfits(transaction, misfits),
        JournalWrite::Usage(record) => history::insert_usage(transaction, record),
        JournalWrite::Archive(part) => history::archive(transaction, part),
        JournalWrite::Feed(write) => history::insert_feed(transaction, write, &mut written.feed),
        JournalWrite::Account(write) => history::account(transaction, write, &mut written.accounted),
        JournalWrite::PruneReports(before) => history::prune_accounts(transaction, *before),
        JournalWrite::SkipFeedNumbers(numbers) => {
            history::skip_numbers(transaction, *numbers, &mut written.feed)
        }
        JournalWrite::Prune { history, archive, feed } => {
            history::prune(transaction, *history)?;
            history::prune_feed(transaction, *feed, &mut written.feed)?;
            history::prune_archive(transaction, *archive)
        }
    }
}

fn append(transaction: &Transaction<'_>, sequence: u64, entry: &JournalEntry) -> rusqlite::Result<()> {
    let insert = "INSERT INTO events (sequence, at, event, format) VALUES (?1, ?2, ?3, ?4)";
    let text = cohabit_journal::encode_event(&entry.event).map_err(no_json)?;
    let mut insert = transaction.prepare_cached(insert)?;
    insert.execute((sequence, entry.at.as_micros(), text, cohabit_journal::FORMAT))?;
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
    let insert = "INSERT OR REPLACE INTO snapshots (sequence, at, parts, format) VALUES (?1, ?2, ?3, ?4)";
    transaction.execute(insert, (sequence, at.as_micros(), parts, cohabit_journal::FORMAT))?;
    Ok(())
}

/// The format of the file, 0 if it is empty; or why it must not be touched.
fn examine(path: &Path, connection: &Connection) -> Result<u32, HeadError> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let format = number("user_version").map_err(sqlite_error_of(path, connection))?;
    let application = number("application_id").map_err(sqlite_error(path))?;
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables: u64 = connection.query_row(tables, [], |row| row.get(0)).map_err(sqlite_error(path))?;
    match u32::try_from(format) {
        Ok(0) if tables == 0 => Ok(0),
        Ok(found) if found > 0 && application == i64::from(APPLICATION) => {
            if found > FORMAT {
                let what = format!("the journal {}", path.display());
                return Err(HeadError::Newer { what, found, known: FORMAT });
            }
            quick_check(path, connection).map(|()| found)
        }
        Ok(_) | Err(_) => Err(corrupt(path, "it is a database, but not a journal of Cohabit")),
    }
}

fn quick_check(path: &Path, connection: &Connection) -> Result<(), HeadError> {
    let verdict: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(sqlite_error(path))?;
    if verdict == "ok" { Ok(()) } else { Err(corrupt(path, verdict)) }
}

/// Gives a file of the format `found` the tables of this version. An older file stays in the transaction of
/// its upgrade.
fn prepare(connection: &Connection, found: u32) -> rusqlite::Result<Upgrade> {
    if found == FORMAT {
        return configure(connection).map(|()| Upgrade::Done);
    }
    if found == 0 {
        configure(connection)?;
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    migrate(connection, found)?;
    if found > 0 {
        return Ok(Upgrade::Pending);
    }
    connection.execute_batch("COMMIT").map(|()| Upgrade::Done)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")
}
