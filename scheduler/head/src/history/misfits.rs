//! Ranks that found no memory left on their device: rows of the table `misfits`, and back.

use cohabit_scheduler_core::MemoryMisfit;
use cohabit_types::{DeviceId, JobId, Time};
use rusqlite::{Connection, Row, Transaction, named_params};

use super::rows::text;
use super::samples::{column_word, integer, sharing_by_word};
use crate::sql::no_json;

/// A replay tells of a misfit again: it stays one row.
const INSERT: &str = "INSERT OR REPLACE INTO misfits VALUES (:job, :attempt, :rank, :device, :gpu, :sharing, \
     :neighbours, :ended_at, :ended_at_us)";

/// Writes these misfits, each once.
pub(crate) fn insert(transaction: &Transaction<'_>, misfits: &[MemoryMisfit]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(INSERT)?;
    for MemoryMisfit { rank, device, gpu, sharing, neighbors, at } in misfits {
        insert.execute(named_params! {
            ":job": rank.attempt.job.to_string(),
            ":attempt": rank.attempt.attempt,
            ":rank": rank.rank,
            ":device": device.as_str(),
            ":gpu": gpu,
            ":sharing": column_word(*sharing),
            ":neighbours": serde_json::to_string(neighbors).map_err(no_json)?,
            ":ended_at": text(*at),
            ":ended_at_us": integer(at.as_micros()),
        })?;
    }
    Ok(())
}

/// The misfits that ended last, at most `limit`; the newest last.
pub(super) fn newest(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<MemoryMisfit>> {
    let wanted = "SELECT job, attempt, rank, device, gpu, sharing, neighbours, ended_at_us FROM misfits \
                  ORDER BY ended_at_us DESC LIMIT ?1";
    let mut query = connection.prepare(wanted)?;
    let rows = query.query_map([limit], past)?;
    let mut misfits = rows.filter_map(Result::transpose).collect::<rusqlite::Result<Vec<MemoryMisfit>>>()?;
    misfits.reverse();
    Ok(misfits)
}

/// A row as a misfit; `None` if a person has written something into it that makes no sense.
fn past(row: &Row<'_>) -> rusqlite::Result<Option<MemoryMisfit>> {
    let job = row.get::<_, String>("job")?.parse::<JobId>().ok();
    let sharing = sharing_by_word(&row.get::<_, String>("sharing")?);
    let neighbors = serde_json::from_str(&row.get::<_, String>("neighbours")?).ok();
    let (Some(job), Some(sharing), Some(neighbors)) = (job, sharing, neighbors) else { return Ok(None) };
    Ok(Some(MemoryMisfit {
        rank: job.attempt(row.get("attempt")?).rank(row.get("rank")?),
        device: DeviceId(row.get("device")?),
        gpu: row.get("gpu")?,
        sharing,
        neighbors,
        at: Time::from_micros(row.get("ended_at_us")?),
    }))
}
