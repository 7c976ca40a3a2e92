//! Writes the record of an ended job as rows: one for the job, and one for each of its attempts.

use cohabit_types::{AttemptRecord, DeviceId, JobRecord, Share, StopReason, Time};
use rusqlite::{Transaction, named_params};

use crate::sql::no_json;

const UPSERT: &str = "INSERT OR REPLACE INTO jobs VALUES (:id, :number, :array_index, :members, :name, :user, \
     :group, :state, :reason_code, :exit_code, :signal, :submitted_at, :started_at, :ended_at, :submitted_at_us, \
     :started_at_us, :ended_at_us, :runtime_s, :gpus, :share, :nodes, :devices, :command, :record)";

const INSERT_ATTEMPT: &str = "INSERT INTO attempts VALUES (:job, :attempt, :started_at, :ended_at, \
     :started_at_us, :ended_at_us, :runtime_s, :stopped, :gpus, :nodes, :devices)";

/// Writes the record of a job that ended, in place of an earlier one.
pub(crate) fn upsert(transaction: &Transaction<'_>, record: &JobRecord) -> rusqlite::Result<()> {
    // A replaced row takes its attempts with it: they reference it with ON DELETE CASCADE.
    insert_job(transaction, record)?;
    record.attempts.iter().try_for_each(|attempt| insert_attempt(transaction, record, attempt))
}

/// Removes the jobs, samples, misfits and usage that ended before this time.
pub(crate) fn prune(transaction: &Transaction<'_>, before: Time) -> rusqlite::Result<()> {
    for table in ["jobs", "stretches", "misfits", "usage"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE ended_at_us < ?1"), [before.as_micros()])?;
    }
    Ok(())
}

/// When an ended job ended.
pub(super) fn ended_at(record: &JobRecord) -> Time {
    record.ended_at.unwrap_or(record.submitted_at)
}

fn insert_job(transaction: &Transaction<'_>, record: &JobRecord) -> rusqlite::Result<()> {
    let ended_at = ended_at(record);
    transaction.prepare_cached(UPSERT)?.execute(named_params! {
        ":id": record.id.to_string(),
        ":number": record.id.number,
        ":array_index": record.id.index,
        ":members": record.array.as_ref().map(|array| array.members),
        ":name": record.name,
        ":user": record.user,
        ":group": record.group,
        ":state": record.state.word(),
        ":reason_code": record.reason_code.code(),
        ":exit_code": record.exit_code,
        ":signal": record.signal.map(|signal| signal.0),
        ":submitted_at": text(record.submitted_at),
        ":started_at": record.started_at.map(text),
        ":ended_at": text(ended_at),
        ":submitted_at_us": record.submitted_at.as_micros(),
        ":started_at_us": record.started_at.map(Time::as_micros),
        ":ended_at_us": ended_at.as_micros(),
        ":runtime_s": record.started_at.map(|start| ended_at.since(start).as_secs_f64()),
        ":gpus": u64::from(record.demand.nodes).saturating_mul(record.demand.devices().into()),
        ":share": record.demand.share().as_f64(),
        ":nodes": record.nodes().join(","),
        ":devices": listed(&record.devices()),
        ":command": record.work,
        ":record": cohabit_journal::encode_record(record).map_err(no_json)?,
    })?;
    Ok(())
}

fn insert_attempt(
    transaction: &Transaction<'_>,
    record: &JobRecord,
    attempt: &AttemptRecord,
) -> rusqlite::Result<()> {
    let devices: Vec<DeviceId> = attempt.ranks.iter().flat_map(|rank| rank.devices.clone()).collect();
    transaction.prepare_cached(INSERT_ATTEMPT)?.execute(named_params! {
        ":job": record.id.to_string(),
        ":attempt": attempt.attempt,
        ":started_at": text(attempt.started_at),
        ":ended_at": attempt.ended_at.map(text),
        ":started_at_us": attempt.started_at.as_micros(),
        ":ended_at_us": attempt.ended_at.map(Time::as_micros),
        ":runtime_s": attempt.ended_at.map(|end| end.since(attempt.started_at).as_secs_f64()),
        ":stopped": attempt.stopped.map(StopReason::as_str),
        ":gpus": held(attempt),
        ":nodes": nodes(attempt).join(","),
        ":devices": listed(&devices),
    })?;
    Ok(())
}

/// Devices of an attempt, each weighted by the share that it held.
fn held(attempt: &AttemptRecord) -> f64 {
    let of_rank = |share: Share, devices: usize| share.as_f64() * devices as f64;
    attempt.ranks.iter().map(|rank| of_rank(rank.share, rank.devices.len())).sum()
}

fn nodes(attempt: &AttemptRecord) -> Vec<&str> {
    let mut nodes: Vec<&str> = attempt.ranks.iter().map(|rank| rank.node.as_str()).collect();
    nodes.dedup();
    nodes
}

fn listed(devices: &[DeviceId]) -> String {
    devices.iter().map(|device| device.as_str()).collect::<Vec<_>>().join(",")
}

/// RFC 3339 in UTC. A time that no calendar holds is written as its microseconds.
pub(super) fn text(time: Time) -> String {
    let stamp =
        i64::try_from(time.as_micros()).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    stamp.map_or_else(|| time.as_micros().to_string(), |stamp| stamp.to_string())
}
