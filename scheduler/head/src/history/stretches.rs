//! How fast ranks got on beside which others, as rows and back.
//!
//! Workers say it, and a row that the tables refuse would end the head: what makes no sense is left out.

use std::collections::BTreeSet;

use cohabit_types::{Bytes, ColocationSample, DeviceId, JobId, SharingStrategy, Time};
use rusqlite::{Connection, Row, Transaction, named_params};

use super::rows::text;
use crate::journal::as_json;

const INSERT: &str = "INSERT OR REPLACE INTO stretches VALUES (:job, :attempt, :rank, :device, :gpu, :sharing, \
     :neighbours, :started_at, :ended_at, :started_at_us, :ended_at_us, :steps, :rate, :memory_bytes, \
     :utilisation)";

/// Writes these stretches. One that is told again replaces what it said before.
pub(crate) fn insert(transaction: &Transaction<'_>, stretches: &[ColocationSample]) -> rusqlite::Result<()> {
    stretches.iter().filter(|it| it.rate.is_finite()).try_for_each(|it| insert_one(transaction, it))
}

fn insert_one(transaction: &Transaction<'_>, stretch: &ColocationSample) -> rusqlite::Result<()> {
    let neighbours: BTreeSet<_> = stretch.neighbours.iter().map(|rank| rank.attempt.job).collect();
    transaction.prepare_cached(INSERT)?.execute(named_params! {
        ":job": stretch.rank.attempt.job.to_string(),
        ":attempt": stretch.rank.attempt.attempt,
        ":rank": stretch.rank.rank,
        ":device": stretch.device.as_str(),
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

const fn word(sharing: SharingStrategy) -> &'static str {
    match sharing {
        SharingStrategy::Exclusive => "exclusive",
        SharingStrategy::Mps => "mps",
        SharingStrategy::TimeSliced => "time_sliced",
    }
}

/// The largest number of the table stands for all beyond.
fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A stretch as it was kept: of its neighbours only the jobs are known, each once.
#[derive(Debug, PartialEq)]
pub(crate) struct StoredSample {
    /// Without its neighbours.
    pub(crate) stretch: ColocationSample,
    /// The other jobs on the device.
    pub(crate) neighbours: Vec<JobId>,
}

/// The stretches that ended last, at most so many; the newest last.
pub(super) fn newest(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<StoredSample>> {
    let wanted = "SELECT job, attempt, rank, device, gpu, sharing, neighbours, started_at_us, ended_at_us, steps, \
                  rate, memory_bytes, utilisation FROM stretches ORDER BY ended_at_us DESC LIMIT ?1";
    let mut query = connection.prepare(wanted)?;
    let rows = query.query_map([limit], past)?;
    let mut stretches =
        rows.filter_map(Result::transpose).collect::<rusqlite::Result<Vec<StoredSample>>>()?;
    stretches.reverse();
    Ok(stretches)
}

/// A row; none where a person has put something into it that makes no sense.
fn past(row: &Row<'_>) -> rusqlite::Result<Option<StoredSample>> {
    let job = row.get_ref("job")?.as_str().ok().and_then(|job| job.parse::<JobId>().ok());
    let sharing = row.get::<_, String>("sharing")?;
    let sharing = SharingStrategy::ALL.into_iter().find(|it| word(*it) == sharing);
    let neighbours = serde_json::from_str(&row.get::<_, String>("neighbours")?).ok();
    let (Some(job), Some(sharing), Some(neighbours)) = (job, sharing, neighbours) else { return Ok(None) };
    let stretch = ColocationSample {
        rank: job.attempt(row.get("attempt")?).rank(row.get("rank")?),
        device: DeviceId(row.get("device")?),
        gpu: row.get("gpu")?,
        sharing,
        neighbours: Vec::new(),
        from: Time::from_micros(row.get("started_at_us")?),
        to: Time::from_micros(row.get("ended_at_us")?),
        steps: row.get("steps")?,
        rate: row.get("rate")?,
        memory: row.get::<_, Option<u64>>("memory_bytes")?.map(Bytes),
        utilisation: row.get("utilisation")?,
    };
    Ok(Some(StoredSample { stretch, neighbours }))
}
