//! Reading the journal back: the newest snapshot, and every event after it without a gap.

use std::path::Path;

use cohabit_proto::Time;
use rusqlite::{Connection, OptionalExtension, Row};

use super::sqlite::{corrupt, failed};
use super::{Entry, Loaded, Snapshot};
use crate::HeadError;

/// The number of the last event, 0 if there was none yet.
pub(super) fn last_sequence(connection: &Connection) -> rusqlite::Result<u64> {
    let last = "SELECT max(ifnull((SELECT max(sequence) FROM events), 0), \
                ifnull((SELECT max(sequence) FROM snapshots), 0))";
    connection.query_row(last, [], |row| row.get(0))
}

/// Everything that a head needs to go on.
pub(super) fn load(path: &Path, connection: &Connection) -> Result<Loaded, HeadError> {
    let snapshot = newest_snapshot(connection).map_err(failed(path))?;
    let (start, since) = snapshot.as_ref().map_or((0, Time::EPOCH), |kept| (kept.sequence, kept.at));
    let rows = rows_after(connection, start).map_err(failed(path))?;
    let mut tail = Vec::with_capacity(rows.len());
    let mut before = (start, since);
    for row in rows {
        let entry = check(path, before, row)?;
        before = (entry.0, entry.1.at);
        tail.push(entry);
    }
    Ok(Loaded { snapshot, tail })
}

fn newest_snapshot(connection: &Connection) -> rusqlite::Result<Option<Snapshot>> {
    let newest = "SELECT sequence, at, head FROM snapshots ORDER BY sequence DESC LIMIT 1";
    let snapshot = |row: &Row<'_>| {
        Ok(Snapshot { sequence: row.get(0)?, at: Time::from_micros(row.get(1)?), head: row.get(2)? })
    };
    connection.query_row(newest, [], snapshot).optional()
}

/// An event as it lies in the file: number, time, JSON.
type Stored = (u64, u64, String);

fn rows_after(connection: &Connection, start: u64) -> rusqlite::Result<Vec<Stored>> {
    let wanted = "SELECT sequence, at, event FROM events WHERE sequence > ?1 ORDER BY sequence";
    let mut query = connection.prepare(wanted)?;
    query.query_map([start], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}

/// Numbers follow one another, times never fall, and the JSON is an event.
fn check(path: &Path, before: (u64, Time), row: Stored) -> Result<(u64, Entry), HeadError> {
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
    Ok((sequence, Entry { at, event }))
}
