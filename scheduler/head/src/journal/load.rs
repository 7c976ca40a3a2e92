//! Reading the journal back: the newest snapshot, and every event after it without a gap.

use std::path::Path;

use cohabit_types::Time;
use rusqlite::{Connection, OptionalExtension, Row};

use super::sqlite::{corrupt, failed};
use super::{EncodedPart, JournalContents, JournalEntry, Snapshot};
use crate::HeadError;

/// The number of the last event, 0 if there was none yet.
pub(super) fn last_sequence(connection: &Connection) -> rusqlite::Result<u64> {
    let last = "SELECT max(ifnull((SELECT max(sequence) FROM events), 0), \
                ifnull((SELECT max(sequence) FROM snapshots), 0))";
    connection.query_row(last, [], |row| row.get(0))
}

/// Everything that a head needs to go on.
pub(super) fn load(path: &Path, connection: &Connection) -> Result<JournalContents, HeadError> {
    let snapshot = newest_snapshot(path, connection)?;
    let (start, since) = snapshot.as_ref().map_or((0, Time::EPOCH), |kept| (kept.sequence, kept.at));
    let rows = rows_after(connection, start).map_err(failed(path))?;
    let mut tail = Vec::with_capacity(rows.len());
    let mut before = (start, since);
    for row in rows {
        let entry = check(path, before, row)?;
        before = (entry.0, entry.1.at);
        tail.push(entry);
    }
    Ok(JournalContents { snapshot, tail })
}

fn newest_snapshot(path: &Path, connection: &Connection) -> Result<Option<Snapshot>, HeadError> {
    let newest = "SELECT sequence, at, parts FROM snapshots ORDER BY sequence DESC LIMIT 1";
    let columns = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let found = connection.query_row(newest, [], columns).optional().map_err(failed(path))?;
    let Some((sequence, at, count)) = found else { return Ok(None) };
    let mut parts = parts_of(connection, sequence, count).map_err(failed(path))?;
    if parts.len() as u64 != count || parts.is_empty() {
        let what = format!("the snapshot after event {sequence} has {} of its {count} parts", parts.len());
        return Err(corrupt(path, what));
    }
    Ok(Some(Snapshot { sequence, at: Time::from_micros(at), rest: parts.remove(0), parts }))
}

fn parts_of(connection: &Connection, snapshot: u64, count: u64) -> rusqlite::Result<Vec<EncodedPart>> {
    let wanted = "SELECT content FROM parts WHERE snapshot = ?1 AND number < ?2 ORDER BY number";
    let mut query = connection.prepare(wanted)?;
    query.query_map([snapshot, count], |row| row.get(0))?.collect()
}

/// An event as it lies in the file: number, time, JSON.
type EventRow = (u64, u64, String);

fn rows_after(connection: &Connection, start: u64) -> rusqlite::Result<Vec<EventRow>> {
    let wanted = "SELECT sequence, at, event FROM events WHERE sequence > ?1 ORDER BY sequence";
    let mut query = connection.prepare(wanted)?;
    query.query_map([start], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}

/// Numbers follow one another, times never fall, and the JSON is an event.
fn check(path: &Path, before: (u64, Time), row: EventRow) -> Result<(u64, JournalEntry), HeadError> {
    let (sequence, at, event) = row;
    let expected = before.0 + 1;
    if sequence != expected {
        return Err(corrupt(path, format!("event {expected} is missing: event {sequence} follows")));
    }
    let at = Time::from_micros(at);
    if at < before.1 {
        return Err(corrupt(path, format!("event {sequence} is older than the one before it")));
    }
    let event = serde_json::from_str(&event)
        .map_err(|error| corrupt(path, format!("event {sequence} cannot be read: {error}")))?;
    Ok((sequence, JournalEntry { at, event }))
}
