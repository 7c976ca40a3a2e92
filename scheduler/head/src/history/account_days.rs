//! What an attempt counts in reports, how that is divided among days, and the sums of days as they are read.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use cohabit_scheduler_core::{AccountOwner, AttemptAccount, MeasuredTime};
use cohabit_types::{IDLE_STRETCH, JobState, Time, UsageAmounts, UsageSums, WorkAlone};
use rusqlite::types::Type;
use rusqlite::{Connection, Row};

/// Microseconds of a day.
const DAY: u64 = 86_400_000_000;
/// A longer attempt counts on the last of its days only.
const MOST_DAYS: u64 = 1_000;

/// The slowdown that an attempt had beside others, by how it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum AppliedSlowdown {
    /// It had its devices alone.
    Exclusive,
    /// By its own steps.
    Measured(f64),
    /// By what was expected when it was placed.
    Predicted(f64),
    /// Not at all.
    Unknown,
}

/// The sums of some days.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct AccountDays {
    /// Of each user of each project, over all these days.
    pub(crate) sums: BTreeMap<AccountOwner, UsageSums>,
    /// The amounts of each day.
    pub(crate) days: BTreeMap<(u64, AccountOwner), UsageAmounts>,
}

/// A span of time, to be divided among its days.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DaySpan {
    start: u64,
    end: u64,
}

/// The day of a time, counted from 1970 in UTC.
pub(crate) fn day_of(time: Time) -> u64 {
    time.as_micros() / DAY
}

/// When this day begins.
pub(crate) fn start_of(day: u64) -> Time {
    Time::from_micros(day.saturating_mul(DAY))
}

impl DaySpan {
    /// From a time to another one, which is not before it.
    pub(crate) fn new(start: Time, end: Time) -> DaySpan {
        DaySpan { start: start.as_micros().min(end.as_micros()), end: end.as_micros() }
    }

    /// Its days, each with its part of the whole.
    pub(crate) fn parts(self) -> Vec<(u64, f64)> {
        let DaySpan { start, end } = self;
        // What ends at midnight has nothing of the day that begins there.
        let (first, last) = (start / DAY, end.saturating_sub(1).max(start) / DAY);
        if first == last || last - first >= MOST_DAYS {
            return vec![(last, 1.0)];
        }
        let part = |day: u64| {
            let (from, to) = (start.max(day * DAY), end.min((day + 1).saturating_mul(DAY)));
            (day, (to - from) as f64 / (end - start) as f64)
        };
        (first..=last).map(part).collect()
    }
}

/// What an attempt that ran until then counts as a whole.
pub(crate) fn attempt_amounts(
    account: &AttemptAccount,
    until: Time,
    time: MeasuredTime,
    slowdown: AppliedSlowdown,
) -> UsageAmounts {
    let held = account.devices * until.since(account.started_at).as_secs_f64();
    let quiet = account.last_progress.map(|at| until.since(at.max(account.started_at)));
    let quiet = quiet.filter(|quiet| *quiet >= IDLE_STRETCH).map_or(0.0, |quiet| quiet.as_secs_f64());
    // A worker's clock may run a little apart from the head's.
    let measured = time.measured.min(held);
    let none = WorkAlone::default();
    // What the same work takes alone, it takes on all of each device.
    let (devices, work) = (account.device_count as f64, until.since(account.started_at).as_secs_f64());
    UsageAmounts {
        held,
        measured,
        busy: time.busy.min(measured),
        idle: if measured > 0.0 { time.idle.min(measured) } else { account.devices * quiet },
        lost: 0.0,
        alone: match slowdown {
            AppliedSlowdown::Exclusive => WorkAlone { exclusive: held, ..none },
            AppliedSlowdown::Measured(factor) => WorkAlone { measured: devices * work / factor, ..none },
            AppliedSlowdown::Predicted(factor) => WorkAlone { predicted: devices * work / factor, ..none },
            AppliedSlowdown::Unknown => WorkAlone { unknown: held, ..none },
        },
    }
}

/// The sums of the days from `first` to `last`.
pub(super) fn read(connection: &Connection, first: u64, last: u64) -> rusqlite::Result<AccountDays> {
    let mut found = AccountDays::default();
    let wanted = "SELECT * FROM account_days WHERE day BETWEEN ?1 AND ?2";
    let mut query = connection.prepare(wanted)?;
    let mut rows = query.query((first, last))?;
    while let Some(row) = rows.next()? {
        let (day, owner, amounts) = (row.get("day")?, owner(row)?, amounts(row)?);
        let sums = found.sums.entry(owner.clone()).or_default();
        sums.amounts = sums.amounts.plus(amounts);
        sums.waits.sum += row.get::<_, f64>("wait_s")?;
        found.days.insert((day, owner), amounts);
    }
    let wanted = "SELECT project, user, kind, key, sum(count) AS count FROM account_counts \
                  WHERE day BETWEEN ?1 AND ?2 GROUP BY project, user, kind, key";
    let mut query = connection.prepare(wanted)?;
    let mut rows = query.query((first, last))?;
    while let Some(row) = rows.next()? {
        let sums = found.sums.entry(owner(row)?).or_default();
        let (kind, key, count): (String, String, u64) =
            (row.get("kind")?, row.get("key")?, row.get("count")?);
        match kind.as_str() {
            "job" => *sums.jobs.entry(parse_key::<JobState>(&key)?).or_default() += count,
            "wait" => *sums.waits.counts.entry(parse_key(&key)?).or_default() += count,
            _ => *sums.attempts.entry(key).or_default() += count,
        }
    }
    Ok(found)
}

fn parse_key<T: FromStr<Err: Display>>(key: &str) -> rusqlite::Result<T> {
    let wrong =
        |error: T::Err| rusqlite::Error::FromSqlConversionFailure(3, Type::Text, error.to_string().into());
    key.parse().map_err(wrong)
}

fn owner(row: &Row<'_>) -> rusqlite::Result<AccountOwner> {
    Ok(AccountOwner { project: row.get("project")?, user: row.get("user")? })
}

fn amounts(row: &Row<'_>) -> rusqlite::Result<UsageAmounts> {
    Ok(UsageAmounts {
        held: row.get("held_s")?,
        measured: row.get("measured_s")?,
        busy: row.get("busy_s")?,
        idle: row.get("idle_s")?,
        lost: row.get("lost_s")?,
        alone: WorkAlone {
            exclusive: row.get("exclusive_s")?,
            measured: row.get("compared_s")?,
            predicted: row.get("predicted_s")?,
            unknown: row.get("unknown_s")?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_divided_among_its_days() {
        let at = |days: f64| Time::from_micros((days * DAY as f64) as u64);
        let parts = |start, end| DaySpan::new(at(start), at(end)).parts();
        assert_eq!(parts(3.25, 3.75), [(3, 1.0)]);
        assert_eq!(parts(3.5, 4.0), [(3, 1.0)], "nothing is left of the day that begins at the end");
        assert_eq!(parts(3.5, 5.5), [(3, 0.25), (4, 0.5), (5, 0.25)]);
        assert_eq!(parts(4.0, 4.0), [(4, 1.0)]);
        assert_eq!(parts(9.0, 8.0), [(8, 1.0)], "a clock that was set back");
        assert_eq!(parts(0.0, 5_000.0), [(4_999, 1.0)]);
        assert_eq!(DaySpan::new(Time::EPOCH, Time::EPOCH).parts(), [(0, 1.0)]);
    }
}
