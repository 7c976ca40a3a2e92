//! Sums for reports: what each user of a project had on each day, in the tables `account_days` and
//! `account_counts`.
//!
//! An entry is added to the sums in the transaction that also moves the place up to which entries count, so
//! an entry that a replay repeats counts no second time. The sums outlive the rows of the jobs. An attempt
//! is divided among the days on which it ran; that it ended counts on the day of its end.

use cohabit_scheduler_core::{AccountOwner, AccountingEntry, AccountingKind, AttemptAccount, MeasuredTime};
use cohabit_types::{AttemptId, Slowdown, Time, UsageAmounts, WaitTimes};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, named_params};

use super::account_days::{AppliedSlowdown, DaySpan, attempt_amounts, day_of};

/// Something that counts, and the event that it follows from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AccountingWrite {
    /// The number of that event, and the place among what it adds.
    pub(crate) place: (u64, u32),
    /// What counts.
    pub(crate) entry: Box<AccountingEntry>,
}

/// The place of the last entry that was counted; none before the first.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccountedPlace(Option<(u64, u32)>);

/// The line of the table `meta` with that place.
const PLACE: &str = "accounted";

const ADD: &str = "INSERT INTO account_days VALUES (:day, :project, :user, :held, :measured, :busy, :idle, :lost, \
     :exclusive, :compared, :predicted, :unknown, :wait) ON CONFLICT DO UPDATE SET \
     held_s = held_s + excluded.held_s, measured_s = measured_s + excluded.measured_s, \
     busy_s = busy_s + excluded.busy_s, idle_s = idle_s + excluded.idle_s, lost_s = lost_s + excluded.lost_s, \
     exclusive_s = exclusive_s + excluded.exclusive_s, compared_s = compared_s + excluded.compared_s, \
     predicted_s = predicted_s + excluded.predicted_s, unknown_s = unknown_s + excluded.unknown_s, \
     wait_s = wait_s + excluded.wait_s";
const COUNT: &str = "INSERT INTO account_counts VALUES (?1, ?2, ?3, ?4, ?5, 1) \
     ON CONFLICT DO UPDATE SET count = count + 1";

impl AccountedPlace {
    /// The place in this journal.
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<AccountedPlace> {
        let wanted = "SELECT value FROM meta WHERE key = ?1";
        let text: Option<String> = connection.query_row(wanted, [PLACE], |row| row.get(0)).optional()?;
        let place = text.as_deref().and_then(|text| {
            let (sequence, ordinal) = text.split_once(':')?;
            Some((sequence.parse().ok()?, ordinal.parse().ok()?))
        });
        Ok(AccountedPlace(place))
    }
}

/// Adds an entry to the sums, unless it is in them already.
pub(crate) fn insert(
    transaction: &Transaction<'_>,
    write: &AccountingWrite,
    place: &mut AccountedPlace,
) -> rusqlite::Result<()> {
    if place.0.is_some_and(|counted| write.place <= counted) {
        return Ok(());
    }
    let AccountingEntry { owner, at, kind } = &*write.entry;
    let day = day_of(*at);
    match kind {
        AccountingKind::Started(waited) => {
            add(transaction, owner, day, UsageAmounts::default(), waited.as_secs_f64())?;
            count(transaction, owner, day, "wait", &WaitTimes::bucket(*waited).to_string())?;
        }
        AccountingKind::AttemptEnded { account, how, is_lost } => {
            let measured = measured(transaction, account.attempt)?;
            let slowdown = slowdown(transaction, account)?;
            let mut amounts = attempt_amounts(account, *at, measured, slowdown);
            if *is_lost {
                amounts.lost = amounts.held;
            }
            for (day, part) in DaySpan::new(account.started_at, *at).parts() {
                add(transaction, owner, day, amounts.times(part), 0.0)?;
            }
            count(transaction, owner, day, "attempt", how)?;
        }
        AccountingKind::JobEnded(state) => {
            add(transaction, owner, day, UsageAmounts::default(), 0.0)?;
            count(transaction, owner, day, "job", state.word())?;
        }
    }
    let (sequence, ordinal) = write.place;
    let move_on = "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value";
    transaction.prepare_cached(move_on)?.execute((PLACE, format!("{sequence}:{ordinal}")))?;
    place.0 = Some(write.place);
    Ok(())
}

/// Removes the sums of days that ended before this time.
pub(crate) fn prune(transaction: &Transaction<'_>, before: Time) -> rusqlite::Result<()> {
    for table in ["account_days", "account_counts"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE day < ?1"), [day_of(before)])?;
    }
    Ok(())
}

fn add(
    transaction: &Transaction<'_>,
    owner: &AccountOwner,
    day: u64,
    amounts: UsageAmounts,
    wait: f64,
) -> rusqlite::Result<()> {
    transaction.prepare_cached(ADD)?.execute(named_params! {
        ":day": day,
        ":project": owner.project,
        ":user": owner.user,
        ":held": amounts.held,
        ":measured": amounts.measured,
        ":busy": amounts.busy,
        ":idle": amounts.idle,
        ":lost": amounts.lost,
        ":exclusive": amounts.alone.exclusive,
        ":compared": amounts.alone.measured,
        ":predicted": amounts.alone.predicted,
        ":unknown": amounts.alone.unknown,
        ":wait": wait,
    })?;
    Ok(())
}

fn count(
    transaction: &Transaction<'_>,
    owner: &AccountOwner,
    day: u64,
    kind: &str,
    key: &str,
) -> rusqlite::Result<()> {
    let mut count = transaction.prepare_cached(COUNT)?;
    count.execute((day, &owner.project, &owner.user, kind, key)).map(drop)
}

/// What workers measured of this attempt, which came into the history before its end.
fn measured(transaction: &Transaction<'_>, attempt: AttemptId) -> rusqlite::Result<MeasuredTime> {
    let wanted = "SELECT total(share * measured_s), total(share * busy_s), total(share * idle_s) FROM usage \
                  WHERE job = ?1 AND attempt = ?2";
    let columns =
        |row: &Row<'_>| Ok(MeasuredTime { measured: row.get(0)?, busy: row.get(1)?, idle: row.get(2)? });
    transaction.prepare_cached(wanted)?.query_row((attempt.job.to_string(), attempt.attempt), columns)
}

/// The slowdown of an attempt beside others: by its own steps alone and beside them, or else as predicted.
fn slowdown(transaction: &Transaction<'_>, account: &AttemptAccount) -> rusqlite::Result<AppliedSlowdown> {
    if account.is_exclusive {
        return Ok(AppliedSlowdown::Exclusive);
    }
    // Steps and the time that they took, alone and over all.
    let wanted = "SELECT total(iif(neighbours = '[]', steps, 0)), total(iif(neighbours = '[]', steps / rate, 0)), \
                  total(steps), total(steps / rate) FROM stretches \
                  WHERE job = ?1 AND attempt = ?2 AND rank = 0 AND rate > 0";
    let columns = |row: &Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]);
    let mut query = transaction.prepare_cached(wanted)?;
    let attempt = account.attempt;
    let [alone_steps, alone_time, steps, time]: [f64; 4] =
        query.query_row((attempt.job.to_string(), attempt.attempt), columns)?;
    let measured = (alone_steps / alone_time) / (steps / time);
    Ok(match account.predicted_slowdown {
        _ if alone_steps > 0.0 && measured.is_finite() => AppliedSlowdown::Measured(measured.max(1.0)),
        Some(predicted) => AppliedSlowdown::Predicted(Slowdown::as_f64(predicted).max(1.0)),
        None => AppliedSlowdown::Unknown,
    })
}

#[cfg(test)]
mod tests;
