//! How fast ranks got on beside which others, as rows.
//!
//! Workers say it, and a row that the tables refuse would end the head: what makes no sense is left out.

use std::collections::BTreeSet;

use cohabit_proto::{Stretch, StretchSharing};
use rusqlite::{Transaction, named_params};

use super::rows::text;
use crate::journal::as_json;

const INSERT: &str = "INSERT OR REPLACE INTO stretches VALUES (:job, :attempt, :rank, :device, :gpu, :sharing, \
     :neighbours, :started_at, :ended_at, :started_at_us, :ended_at_us, :steps, :rate, :memory_bytes, \
     :utilisation)";

/// Writes these stretches. One that is told again replaces what it said before.
pub(crate) fn insert(transaction: &Transaction<'_>, stretches: &[Stretch]) -> rusqlite::Result<()> {
    stretches.iter().filter(|it| it.rate.is_finite()).try_for_each(|it| insert_one(transaction, it))
}

fn insert_one(transaction: &Transaction<'_>, stretch: &Stretch) -> rusqlite::Result<()> {
    let neighbours: BTreeSet<_> = stretch.neighbours.iter().map(|rank| rank.attempt.job).collect();
    transaction.prepare_cached(INSERT)?.execute(named_params! {
        ":job": stretch.rank.attempt.job.to_string(),
        ":attempt": stretch.rank.attempt.attempt,
        ":rank": stretch.rank.rank,
        ":device": stretch.device.0,
        ":gpu": stretch.gpu,
        ":sharing": word(stretch.sharing),
        ":neighbours": as_json(&neighbours)?,
        ":started_at": text(stretch.from),
        ":ended_at": text(stretch.to),
        ":started_at_us": integer(stretch.from.as_micros()),
        ":ended_at_us": integer(stretch.to.as_micros()),
        ":steps": integer(stretch.steps),
        ":rate": stretch.rate,
        ":memory_bytes": stretch.memory.map(|memory| integer(memory.0)),
        ":utilisation": stretch.utilisation,
    })?;
    Ok(())
}

const fn word(sharing: StretchSharing) -> &'static str {
    match sharing {
        StretchSharing::Exclusive => "exclusive",
        StretchSharing::Mps => "mps",
        StretchSharing::TimeSliced => "time_sliced",
    }
}

/// The largest number of the table stands for all beyond.
fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
