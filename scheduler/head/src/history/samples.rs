//! How fast ranks ran beside which others: samples as rows of the table `stretches`, and back.
//!
//! Workers report samples, and a row that the tables refuse would end the head. So a sample without sense is
//! left out.

use std::collections::BTreeSet;

use cohabit_types::{Bytes, ColocationSample, DeviceId, JobId, SharingStrategy, Time};
use rusqlite::{Connection, Row, Transaction, named_params};

use super::rows::text;
use crate::sql::no_json;

const INSERT: &str = "INSERT OR REPLACE INTO stretches VALUES (:job, :attempt, :rank, :device, :gpu, :sharing, \
     :neighbours, :started_at, :ended_at, :started_at_us, :ended_at_us, :steps, :rate, :memory_bytes, \
     :utilisation)";

/// Writes these samples. A sample that is reported again replaces its earlier row.
pub(crate) fn insert(transaction: &Transaction<'_>, samples: &[ColocationSample]) -> rusqlite::Result<()> {
    samples.iter().filter(|it| it.rate.is_finite()).try_for_each(|it| insert_one(transaction, it))
}

fn insert_one(transaction: &Transaction<'_>, sample: &ColocationSample) -> rusqlite::Result<()> {
    let neighbors: BTreeSet<_> = sample.neighbors.iter().map(|rank| rank.attempt.job).collect();
    transaction.prepare_cached(INSERT)?.execute(named_params! {
        ":job": sample.rank.attempt.job.to_string(),
        ":attempt": sample.rank.attempt.attempt,
        ":rank": sample.rank.rank,
        ":device": sample.device.as_str(),
        ":gpu": sample.gpu,
        ":sharing": column_word(sample.sharing),
        ":neighbours": serde_json::to_string(&neighbors).map_err(no_json)?,
        ":started_at": text(sample.from),
        ":ended_at": text(sample.to),
        ":started_at_us": integer(sample.from.as_micros()),
        ":ended_at_us": integer(sample.to.as_micros()),
        ":steps": integer(sample.steps),
        ":rate": sample.rate,
        ":memory_bytes": sample.memory.map(|memory| integer(memory.0)),
        ":utilisation": sample.utilization,
    })?;
    Ok(())
}

/// The words that schema/2.sql documents for the column `sharing`. [`SharingStrategy::word`] differs in one
/// of them, but the queries of users use this one.
pub(super) const fn column_word(sharing: SharingStrategy) -> &'static str {
    match sharing {
        SharingStrategy::Exclusive => "exclusive",
        SharingStrategy::Mps => "mps",
        SharingStrategy::TimeSliced => "time_sliced",
    }
}

/// The strategy with this word in the column `sharing`.
pub(super) fn sharing_by_word(word: &str) -> Option<SharingStrategy> {
    SharingStrategy::ALL.into_iter().find(|it| column_word(*it) == word)
}

/// SQLite holds signed numbers: the largest of them stands for every larger one.
pub(super) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A sample as the history keeps it: of its neighbors it has the jobs, each once.
#[derive(Debug, PartialEq)]
pub(crate) struct StoredSample {
    /// The sample without its neighbors.
    pub(crate) sample: ColocationSample,
    /// The other jobs on the device.
    pub(crate) neighbors: Vec<JobId>,
}

/// The samples that ended last, at most `limit`; the newest last.
pub(super) fn newest(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<StoredSample>> {
    let wanted = "SELECT job, attempt, rank, device, gpu, sharing, neighbours, started_at_us, ended_at_us, steps, \
                  rate, memory_bytes, utilisation FROM stretches ORDER BY ended_at_us DESC LIMIT ?1";
    let mut query = connection.prepare(wanted)?;
    let rows = query.query_map([limit], past)?;
    let mut samples = rows.filter_map(Result::transpose).collect::<rusqlite::Result<Vec<StoredSample>>>()?;
    samples.reverse();
    Ok(samples)
}

/// A row as a sample; `None` if a person has written something into it that makes no sense.
fn past(row: &Row<'_>) -> rusqlite::Result<Option<StoredSample>> {
    let job = row.get_ref("job")?.as_str().ok().and_then(|job| job.parse::<JobId>().ok());
    let sharing = sharing_by_word(&row.get::<_, String>("sharing")?);
    let neighbors = serde_json::from_str(&row.get::<_, String>("neighbours")?).ok();
    let (Some(job), Some(sharing), Some(neighbors)) = (job, sharing, neighbors) else { return Ok(None) };
    let sample = ColocationSample {
        rank: job.attempt(row.get("attempt")?).rank(row.get("rank")?),
        device: DeviceId(row.get("device")?),
        gpu: row.get("gpu")?,
        sharing,
        neighbors: Vec::new(),
        from: Time::from_micros(row.get("started_at_us")?),
        to: Time::from_micros(row.get("ended_at_us")?),
        steps: row.get("steps")?,
        rate: row.get("rate")?,
        memory: row.get::<_, Option<u64>>("memory_bytes")?.map(Bytes),
        utilization: row.get("utilisation")?,
    };
    Ok(Some(StoredSample { sample, neighbors }))
}
