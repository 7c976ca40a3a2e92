//! Reads the journal: the newest snapshot, and every event after it without a gap.

use std::path::Path;
use std::str::Utf8Error;

use cohabit_journal::{JournalDecodeError, decode_event};
use cohabit_scheduler_core::Event;
use cohabit_types::{Request, Time};
use rusqlite::{Connection, OptionalExtension, Row};

use super::encoded_part::EncodedPart;
use super::store::{JournalContents, JournalEntry, LoadedSnapshot};
use crate::HeadError;
use crate::sql::{corrupt, sqlite_error, undecodable};

/// The number of the last event; 0 if there is none.
pub(super) fn last_sequence(connection: &Connection) -> rusqlite::Result<u64> {
    let last = "SELECT max(ifnull((SELECT max(sequence) FROM events), 0), \
                ifnull((SELECT max(sequence) FROM snapshots), 0))";
    connection.query_row(last, [], |row| row.get(0))
}

/// The newest snapshot and the events after it.
pub(super) fn load(path: &Path, connection: &Connection) -> Result<JournalContents, HeadError> {
    let snapshot = newest_snapshot(path, connection)?;
    let (start, since) = snapshot.as_ref().map_or((0, Time::EPOCH), |kept| (kept.sequence, kept.at));
    let rows = rows_after(connection, start).map_err(sqlite_error(path))?;
    let mut tail = Vec::with_capacity(rows.len());
    let mut before = (start, since);
    let mut rows = rows.into_iter();
    while let Some(row) = rows.next() {
        let entry = check(path, before, &row, rows.as_slice())?;
        before = (entry.0, entry.1.at);
        tail.push(entry);
    }
    Ok(JournalContents { snapshot, tail })
}

fn newest_snapshot(path: &Path, connection: &Connection) -> Result<Option<LoadedSnapshot>, HeadError> {
    let newest = "SELECT sequence, at, parts, format FROM snapshots ORDER BY sequence DESC LIMIT 1";
    let columns = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    let found = connection.query_row(newest, [], columns).optional().map_err(sqlite_error(path))?;
    let Some((sequence, at, count, format)) = found else { return Ok(None) };
    let mut parts = parts_of(connection, sequence, count).map_err(sqlite_error(path))?;
    if parts.len() as u64 != count || parts.is_empty() {
        let what = format!("the snapshot after event {sequence} has {} of its {count} parts", parts.len());
        return Err(corrupt(path, what));
    }
    let at = Time::from_micros(at);
    Ok(Some(LoadedSnapshot { sequence, at, format, rest: parts.remove(0), parts }))
}

fn parts_of(connection: &Connection, snapshot: u64, count: u64) -> rusqlite::Result<Vec<EncodedPart>> {
    let wanted = "SELECT content FROM parts WHERE snapshot = ?1 AND number < ?2 ORDER BY number";
    let mut query = connection.prepare(wanted)?;
    query.query_map([snapshot, count], |row| row.get(0))?.collect()
}

/// A row of the table `events`.
struct EventRow {
    sequence: u64,
    at: u64,
    /// Damage may leave no UTF-8.
    text: Result<String, Utf8Error>,
    format: u32,
}

impl EventRow {
    fn decode(&self) -> Result<Event, EventDecodeError> {
        Ok(decode_event(self.format, self.text.as_ref().map_err(|error| *error)?)?)
    }
}

/// Why the event of a row cannot be read.
#[derive(Debug, thiserror::Error)]
enum EventDecodeError {
    #[error("it is no UTF-8 text")]
    Utf8(#[from] Utf8Error),
    #[error(transparent)]
    Content(#[from] JournalDecodeError),
}

fn rows_after(connection: &Connection, start: u64) -> rusqlite::Result<Vec<EventRow>> {
    let wanted = "SELECT sequence, at, event, format FROM events WHERE sequence > ?1 ORDER BY sequence";
    let mut query = connection.prepare(wanted)?;
    let columns = |row: &Row<'_>| {
        let text = str::from_utf8(row.get_ref(2)?.as_bytes()?).map(str::to_owned);
        Ok(EventRow { sequence: row.get(0)?, at: row.get(1)?, text, format: row.get(3)? })
    };
    query.query_map([start], columns)?.collect()
}

/// Decodes an event. Numbers must follow one another, and times must never fall. `rest` are the rows behind
/// it, for the error of one that cannot be read.
fn check(
    path: &Path,
    before: (u64, Time),
    row: &EventRow,
    rest: &[EventRow],
) -> Result<(u64, JournalEntry), HeadError> {
    let (sequence, at) = (row.sequence, Time::from_micros(row.at));
    let expected = before.0 + 1;
    if sequence != expected {
        return Err(corrupt(path, format!("event {expected} is missing: event {sequence} follows")));
    }
    if at < before.1 {
        return Err(corrupt(path, format!("event {sequence} is older than the one before it")));
    }
    match row.decode() {
        Ok(event) => Ok((sequence, JournalEntry { at, event })),
        Err(EventDecodeError::Content(error @ JournalDecodeError::UnknownFormat { .. })) => {
            Err(undecodable(path, &format!("event {sequence}"), &error))
        }
        Err(error) => {
            let why = format!("cannot be read: {error}. Behind it, {}", describe_rest(rest));
            Err(HeadError::CannotReplay { path: path.to_owned(), event: sequence, why })
        }
    }
}

/// What is lost with these events, if they are.
fn describe_rest(rest: &[EventRow]) -> String {
    let readable: Vec<(u64, Event)> =
        rest.iter().filter_map(|row| Some((row.sequence, row.decode().ok()?))).collect();
    let (Some((first, _)), Some((last, _))) = (readable.first(), readable.last()) else {
        return "no event can be read".to_owned();
    };
    let submissions = readable.iter().filter(|(_, event)| is_submission(event)).count();
    let damaged = rest.len() - readable.len();
    format!(
        "{} readable events ({first} to {last}), {submissions} of them submissions of jobs, and {damaged} damaged ones",
        readable.len()
    )
}

/// Whether a client submits a job.
pub(super) fn is_submission(event: &Event) -> bool {
    matches!(event, Event::Client(_, _, Request::Submit(_)))
}
