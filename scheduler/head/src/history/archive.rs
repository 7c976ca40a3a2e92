//! The archive: what the head needs of jobs that have left its memory, in the form of snapshots.

use cohabit_journal::{decode_part, encode_part};
use cohabit_scheduler_core::{ArchivedPart, SnapshotPart};
use cohabit_types::{Bytes, Time};
use rusqlite::types::Type;
use rusqlite::{Connection, Transaction};

use crate::journal::{EncodedPart, PartDecodeError};
use crate::sql::no_json;

/// Writes a part of a submission, in place of an earlier one.
pub(crate) fn insert(transaction: &Transaction<'_>, archived: &ArchivedPart) -> rusqlite::Result<()> {
    let ArchivedPart { number, part, ended_at, content } = archived;
    let content = EncodedPart::of(&encode_part(content).map_err(no_json)?);
    let insert = "INSERT OR REPLACE INTO archive (number, part, ended_at_us, format, content) \
                  VALUES (?1, ?2, ?3, ?4, ?5)";
    let row = (number, part, ended_at.as_micros(), cohabit_journal::FORMAT, content);
    transaction.prepare_cached(insert)?.execute(row)?;
    Ok(())
}

/// Removes the submissions that ended before this time.
pub(crate) fn prune(transaction: &Transaction<'_>, before: Time) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM archive WHERE ended_at_us < ?1", [before.as_micros()])?;
    Ok(())
}

/// What the parts of a submission take on disk.
pub(super) fn size(connection: &Connection, number: u64) -> rusqlite::Result<Bytes> {
    let wanted = "SELECT ifnull(sum(length(content)), 0) FROM archive WHERE number = ?1";
    connection.prepare_cached(wanted)?.query_row([number], |row| row.get(0).map(Bytes))
}

/// The parts of a submission, none where it is not in the archive.
pub(super) fn parts(connection: &Connection, number: u64) -> rusqlite::Result<Vec<SnapshotPart>> {
    let wanted = "SELECT format, content FROM archive WHERE number = ?1 ORDER BY part";
    let mut query = connection.prepare_cached(wanted)?;
    let parts = query.query_map([number], |row| decode(row.get(0)?, &row.get(1)?))?;
    parts.collect()
}

fn decode(format: u32, content: &EncodedPart) -> rusqlite::Result<SnapshotPart> {
    let decoded = content.text().and_then(|text| decode_part(format, &text).map_err(PartDecodeError::from));
    decoded.map_err(|error| rusqlite::Error::FromSqlConversionFailure(1, Type::Blob, error.into()))
}
