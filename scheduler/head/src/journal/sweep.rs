//! Removes what newer snapshots made redundant. Each commit removes more than it adds, so no commit takes
//! long and the file stays small.
//!
//! The newest two snapshots stay, and the events after the older of them. Parts of a snapshot that was never
//! finished go, unless it is being written.

use rusqlite::Transaction;

/// Events that one commit removes: twice as many as one adds.
const EVENTS: usize = 1_024;
/// Parts that one commit removes: most commits add none, and none adds more than one.
const PARTS: usize = 4;

const OLD_SNAPSHOTS: &str = "DELETE FROM snapshots WHERE sequence NOT IN (\
     SELECT sequence FROM snapshots ORDER BY sequence DESC LIMIT 2)";

const OLD_EVENTS: &str = "DELETE FROM events WHERE sequence IN (\
     SELECT sequence FROM events WHERE sequence <= (\
         SELECT sequence FROM snapshots ORDER BY sequence DESC LIMIT 1 OFFSET 1) LIMIT ?1)";

const OLD_PARTS: &str = "DELETE FROM parts WHERE rowid IN (\
     SELECT rowid FROM parts WHERE snapshot NOT IN (SELECT sequence FROM snapshots) \
         AND snapshot IS NOT ?1 LIMIT ?2)";

/// Whether there may be more to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SweepProgress {
    Partial,
    Complete,
}

/// Removes some of what is redundant. `under_way` is the snapshot that is being written.
pub(super) fn sweep(
    transaction: &Transaction<'_>,
    under_way: Option<u64>,
) -> rusqlite::Result<SweepProgress> {
    transaction.prepare_cached(OLD_SNAPSHOTS)?.execute([])?;
    let events = transaction.prepare_cached(OLD_EVENTS)?.execute([EVENTS])?;
    let parts = transaction.prepare_cached(OLD_PARTS)?.execute((under_way, PARTS))?;
    Ok(if events < EVENTS && parts < PARTS { SweepProgress::Complete } else { SweepProgress::Partial })
}
