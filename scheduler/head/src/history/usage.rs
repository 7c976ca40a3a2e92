//! What ranks did with their GPUs: rows of the table `usage`, one for a rank and a GPU.

use std::collections::BTreeSet;

use cohabit_journal::{decode_curve, encode_curve};
use cohabit_types::{Bytes, DeviceId, DeviceUsage, JobId, RankId, Share, Span, Time, UsageRecord};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, named_params};

use super::rows::text;
use super::samples::integer;
use crate::sql::no_json;

const INSERT: &str = "INSERT OR REPLACE INTO usage VALUES (:job, :attempt, :rank, :device, :user, :node, :share, \
     :ended_at, :ended_at_us, :held_s, :measured_s, :busy_s, :idle_s, :memory_bytes, :capacity_bytes, \
     :energy_wh, :shared, :curve)";
/// The most rows in an answer: each has up to a kilobyte.
const MOST_ROWS: usize = 2_048;

/// Writes this record, in place of an earlier one of the same rank and GPU.
pub(crate) fn insert(transaction: &Transaction<'_>, record: &UsageRecord) -> rusqlite::Result<()> {
    let UsageRecord { rank, user, node, share, at, live: _, usage } = record;
    transaction.prepare_cached(INSERT)?.execute(named_params! {
        ":job": rank.attempt.job.to_string(),
        ":attempt": rank.attempt.attempt,
        ":rank": rank.rank,
        ":device": usage.device.as_str(),
        ":user": user,
        ":node": node,
        ":share": share.as_f64(),
        ":ended_at": text(*at),
        ":ended_at_us": integer(at.as_micros()),
        ":held_s": usage.held.as_secs_f64(),
        ":measured_s": usage.measured.as_secs_f64(),
        ":busy_s": usage.busy.as_secs_f64(),
        ":idle_s": usage.idle.as_secs_f64(),
        ":memory_bytes": usage.memory.map(|it| integer(it.0)),
        ":capacity_bytes": integer(usage.capacity.0),
        ":energy_wh": usage.energy.filter(|it| it.is_finite()),
        ":shared": usage.shared,
        ":curve": encode_curve(&usage.curve).map_err(no_json)?,
    })?;
    Ok(())
}

/// The records of these jobs, in the order of attempts, ranks and devices; at most [`MOST_ROWS`], where the
/// earliest attempts of the last jobs are left out.
pub(super) fn read(connection: &Connection, jobs: &BTreeSet<JobId>) -> rusqlite::Result<Vec<UsageRecord>> {
    let wanted = "SELECT * FROM usage WHERE job = ?1 ORDER BY attempt DESC, rank, device LIMIT ?2";
    let mut query = connection.prepare(wanted)?;
    let mut records = Vec::new();
    for job in jobs {
        let left = MOST_ROWS.saturating_sub(records.len());
        let rows = query.query_map((job.to_string(), left as u64), |row| record(*job, row))?;
        records.extend(rows.collect::<rusqlite::Result<Vec<UsageRecord>>>()?);
    }
    records.sort_by(|a, b| (a.rank, &a.usage.device).cmp(&(b.rank, &b.usage.device)));
    Ok(records)
}

fn record(job: JobId, row: &Row<'_>) -> rusqlite::Result<UsageRecord> {
    let seconds = |column| row.get::<_, f64>(column).map(Span::from_secs_f64);
    let bytes = |bytes: i64| Bytes(u64::try_from(bytes).unwrap_or(0));
    let curve: String = row.get("curve")?;
    let rank: RankId = job.attempt(row.get("attempt")?).rank(row.get("rank")?);
    Ok(UsageRecord {
        rank,
        user: row.get("user")?,
        node: row.get("node")?,
        share: Share((row.get::<_, f64>("share")? * 1_000.0).round() as u32),
        at: Time::from_micros(row.get("ended_at_us")?),
        live: false,
        usage: DeviceUsage {
            device: DeviceId(row.get("device")?),
            held: seconds("held_s")?,
            measured: seconds("measured_s")?,
            busy: seconds("busy_s")?,
            idle: seconds("idle_s")?,
            memory: row.get::<_, Option<i64>>("memory_bytes")?.map(bytes),
            capacity: bytes(row.get("capacity_bytes")?),
            energy: row.get("energy_wh")?,
            shared: row.get("shared")?,
            curve: decode_curve(&curve)
                .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, error.into()))?,
        },
    })
}

#[cfg(test)]
mod tests {
    use cohabit_types::{UsageCurve, UsagePoint};

    use super::*;
    use crate::history::HistoryReader;
    use crate::journal::{Journal, JournalWrite};
    use crate::test_kit::{TestJournal, at};

    fn sample(job: JobId, attempt: u32) -> UsageRecord {
        let points = vec![
            UsagePoint { utilization: Some(70), memory: None },
            UsagePoint::default(),
            UsagePoint { utilization: Some(0), memory: Some(100) },
        ];
        UsageRecord {
            rank: job.attempt(attempt).rank(0),
            user: "ada".into(),
            node: "node1".into(),
            share: Share(300),
            at: at(50),
            live: false,
            usage: DeviceUsage {
                device: DeviceId("GPU-1".into()),
                held: Span::from_secs(40),
                measured: Span::from_secs(30),
                busy: Span::from_millis(20_500),
                idle: Span::ZERO,
                memory: Some(Bytes(7)),
                capacity: Bytes(80),
                energy: Some(1.25),
                shared: true,
                curve: UsageCurve { step: Span::from_secs(10), points },
            },
        }
    }

    #[test]
    fn records_come_back_as_they_were_written_and_a_repeated_one_stays_one_row() {
        let journal = TestJournal::new();
        let mut open = journal.open();
        let (one, two) = (JobId::new(1), JobId::member(2, 5));
        let writes = [sample(one, 2), sample(one, 1), sample(two, 1), sample(one, 2)];
        open.commit(&writes.map(|it| JournalWrite::Usage(Box::new(it)))).unwrap();
        let reader = HistoryReader::new(&journal.path);
        let usage = |jobs: &[JobId]| reader.usage(&jobs.iter().copied().collect()).unwrap();
        assert_eq!(usage(&[one]), [sample(one, 1), sample(one, 2)]);
        assert_eq!(usage(&[two, JobId::new(9)]), [sample(two, 1)]);
        let prune = |history| JournalWrite::Prune { history, archive: at(0), feed: at(0) };
        open.commit(&[prune(at(50))]).unwrap();
        assert_eq!(usage(&[two]).len(), 1);
        open.commit(&[prune(at(51))]).unwrap();
        assert_eq!(usage(&[one, two]), []);
    }

    #[test]
    fn of_too_many_rows_the_earliest_attempts_are_left_out() {
        let journal = TestJournal::new();
        let job = JobId::new(1);
        let writes =
            (1..=MOST_ROWS as u32 + 3).map(|attempt| JournalWrite::Usage(Box::new(sample(job, attempt))));
        journal.open().commit(&writes.collect::<Vec<_>>()).unwrap();
        let kept = HistoryReader::new(&journal.path).usage(&[job].into()).unwrap();
        let attempts = [kept.first(), kept.last()].map(|it| it.unwrap().rank.attempt.attempt);
        assert_eq!((kept.len(), attempts), (MOST_ROWS, [4, MOST_ROWS as u32 + 3]));
    }
}
