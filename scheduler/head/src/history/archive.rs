//! The archive: what the head needs of jobs that have left its memory, in the form of snapshots.

use std::collections::BTreeSet;

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

/// What the archive has of some submissions.
#[derive(Debug)]
pub(crate) enum ArchivedContent {
    /// Each with all its jobs; those that are not there are left out.
    Submissions(Vec<SnapshotPart>),
    /// More than was asked for.
    TooLarge,
}

/// These submissions, unless their text takes more than `most`.
pub(super) fn read(
    connection: &Connection,
    numbers: &BTreeSet<u64>,
    most: Bytes,
) -> rusqlite::Result<ArchivedContent> {
    let wanted = "SELECT format, content FROM archive WHERE number = ?1 ORDER BY part";
    let mut query = connection.prepare(wanted)?;
    let (mut submissions, mut size) = (Vec::new(), Bytes(0));
    for number in numbers {
        let mut whole: Option<SnapshotPart> = None;
        let mut rows = query.query([number])?;
        while let Some(row) = rows.next()? {
            let content: EncodedPart = row.get(1)?;
            let text = content.text().map_err(undecodable)?;
            size = size + Bytes(text.len() as u64);
            if size > most {
                return Ok(ArchivedContent::TooLarge);
            }
            let part = decode_part(row.get(0)?, &text).map_err(|error| undecodable(error.into()))?;
            whole.get_or_insert_default().append(part);
        }
        submissions.extend(whole);
    }
    Ok(ArchivedContent::Submissions(submissions))
}

fn undecodable(error: PartDecodeError) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(1, Type::Blob, error.into())
}
