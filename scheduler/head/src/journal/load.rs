//! Reads the journal: the newest snapshot, and every event after it without a gap.

use std::path::Path;

use cohabit_journal::decode_event;
use cohabit_types::Time;
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
    for row in rows {
        let entry = check(path, before, row)?;
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
    text: String,
    format: u32,
}

fn rows_after(connection: &Connection, start: u64) -> rusqlite::Result<Vec<EventRow>> {
    let wanted = "SELECT sequence, at, event, format FROM events WHERE sequence > ?1 ORDER BY sequence";
    let mut query = connection.prepare(wanted)?;
    let columns = |row: &Row<'_>| {
        Ok(EventRow { sequence: row.get(0)?, at: row.get(1)?, text: row.get(2)?, format: row.get(3)? })
    };
    query.query_map([start], columns)?.collect()
}

/// Decodes an event. Numbers must follow one another, and times must never fall.
fn check(path: &Path, before: (u64, Time), row: EventRow) -> Result<(u64, JournalEntry), HeadError> {
    let EventRow { sequence, at, text, format } = row;
    let expected = before.0 + 1;
    if sequence != expected {
        return Err(corrupt(path, format!("event {expected} is missing: event {sequence} follows")));
    }
    let at = Time::from_micros(at);
    if at < before.1 {
        return Err(corrupt(path, format!("event {sequence} is older than the one before it")));
    }
    let event = decode_event(format, &text)
        .map_err(|error| undecodable(path, &format!("event {sequence}"), &error))?;
    Ok((sequence, JournalEntry { at, event }))
}
