//! Queries to the history: one job, a page of jobs, the newest jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use cohabit_scheduler_core::MemoryMisfit;
use cohabit_types::{Bytes, Feed, FeedCursor, Filter, JobId, JobRecord, UsageRecord};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params_from_iter};

use super::account_days::{self, AccountDays};
use super::archive::{self, ArchivedContent};
use super::rows::ended_at;
use super::samples::{self, StoredSample};
use super::{feed, misfits, usage};
use crate::HeadError;
use crate::sql::{sqlite_error, sqlite_error_of};

/// Reads the history; cheap to clone. Its methods block: call them on blocking threads only.
#[derive(Debug, Clone)]
pub(crate) struct HistoryReader {
    path: PathBuf,
}

/// Records in the order of their ids.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct HistoryPage {
    /// The newest last.
    pub(crate) jobs: Vec<JobRecord>,
    /// Whether there are more after the last of them.
    pub(crate) more: bool,
}

/// A page ends with the job that reaches this many bytes.
const MOST_BYTES: usize = 2 << 20;

impl HistoryReader {
    /// The history in this journal.
    pub(crate) fn new(journal: &Path) -> HistoryReader {
        HistoryReader { path: journal.to_owned() }
    }

    /// The record of a job that ended.
    pub(crate) fn record(&self, job: JobId) -> Result<Option<JobRecord>, HeadError> {
        self.read(|connection| {
            let mut query = connection.prepare("SELECT record FROM jobs WHERE id = ?1")?;
            query.query_row([job.to_string()], |row| parse(row.get(0)?)).optional()
        })
    }

    /// The jobs that pass the filter, as lists show them.
    pub(crate) fn list(&self, filter: &Filter) -> Result<HistoryPage, HeadError> {
        let (conditions, values) = conditions(filter);
        let limit = u64::from(filter.limit);
        let wanted = format!(
            "SELECT record FROM jobs WHERE {conditions} ORDER BY number, ifnull(array_index, -1) LIMIT {}",
            limit + 1
        );
        self.read(|connection| {
            let mut query = connection.prepare(&wanted)?;
            let mut rows = query.query(params_from_iter(values))?;
            let (mut page, mut bytes) = (HistoryPage::default(), 0);
            while let Some(row) = rows.next()? {
                if page.jobs.len() as u64 == limit || bytes >= MOST_BYTES {
                    page.more = true;
                    break;
                }
                let record = parse(row.get(0)?)?.brief();
                bytes += record.weight();
                page.jobs.push(record);
            }
            Ok(page)
        })
    }

    /// The jobs that ended last, at most `limit`; the newest last.
    pub(crate) fn newest(&self, limit: u32) -> Result<Vec<JobRecord>, HeadError> {
        let wanted = "SELECT record FROM jobs ORDER BY ended_at_us DESC, number DESC LIMIT ?1";
        let mut jobs = self.read(|connection| records(connection, wanted, vec![limit.into()]))?;
        jobs.reverse();
        Ok(jobs)
    }

    /// The samples that ended last, at most `limit`; the newest last.
    pub(crate) fn newest_samples(&self, limit: u32) -> Result<Vec<StoredSample>, HeadError> {
        self.read(|connection| samples::newest(connection, limit))
    }

    /// The misfits that ended last, at most `limit`; the newest last.
    pub(crate) fn newest_misfits(&self, limit: u32) -> Result<Vec<MemoryMisfit>, HeadError> {
        self.read(|connection| misfits::newest(connection, limit))
    }

    /// The records of these jobs, as far as they have ended.
    pub(crate) fn records(
        &self,
        jobs: impl IntoIterator<Item = JobId>,
    ) -> Result<BTreeMap<JobId, JobRecord>, HeadError> {
        self.read(|connection| {
            let mut query = connection.prepare("SELECT record FROM jobs WHERE id = ?1")?;
            let mut record =
                |job: JobId| query.query_row([job.to_string()], |row| parse(row.get(0)?)).optional();
            let found = jobs.into_iter().map(|job| Ok(record(job)?.map(|record| (job, record))));
            found.filter_map(Result::transpose).collect()
        })
    }

    /// What the archive has of these submissions, unless their text takes more than this.
    pub(crate) fn archived(
        &self,
        numbers: &BTreeSet<u64>,
        most: Bytes,
    ) -> Result<ArchivedContent, HeadError> {
        self.read(|connection| archive::read(connection, numbers, most))
    }

    /// The entries of the feed after this cursor, those of one user where one is given.
    pub(crate) fn feed(&self, after: Option<FeedCursor>, user: Option<&str>) -> Result<Feed, HeadError> {
        self.read(|connection| feed::read(connection, after, user))
    }

    /// What ranks of these jobs that have ended did with their GPUs.
    pub(crate) fn usage(&self, jobs: &BTreeSet<JobId>) -> Result<Vec<UsageRecord>, HeadError> {
        self.read(|connection| usage::read(connection, jobs))
    }

    /// What everybody had on the days, counted from 1970, from the first to the last.
    pub(crate) fn account_days(&self, first: u64, last: u64) -> Result<AccountDays, HeadError> {
        self.read(|connection| account_days::read(connection, first, last))
    }

    /// The records among these that the history does not have.
    pub(crate) fn missing(&self, ended: Vec<JobRecord>) -> Result<Vec<JobRecord>, HeadError> {
        self.read(|connection| {
            let mut query = connection.prepare("SELECT 1 FROM jobs WHERE id = ?1 AND ended_at_us = ?2")?;
            let mut has =
                |record: &JobRecord| query.exists((record.id.to_string(), ended_at(record).as_micros()));
            let missing = ended.into_iter().map(|record| Ok((!has(&record)?).then_some(record)));
            missing.filter_map(Result::transpose).collect()
        })
    }

    /// Plain jobs, and arrays as a whole, with these numbers.
    pub(crate) fn numbers(&self, numbers: RangeInclusive<u64>) -> Result<Vec<JobId>, HeadError> {
        self.read(|connection| {
            let wanted = "SELECT number FROM jobs WHERE number BETWEEN ?1 AND ?2 AND array_index IS NULL \
                          ORDER BY number LIMIT 10001";
            let mut query = connection.prepare(wanted)?;
            let bounds = [*numbers.start(), *numbers.end()].map(number);
            let jobs = query.query_map(bounds, |row| row.get(0).map(JobId::new))?;
            jobs.collect()
        })
    }

    fn read<T>(&self, ask: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, HeadError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(sqlite_error(&self.path))?;
        ask(&connection).map_err(sqlite_error_of(&self.path, &connection))
    }
}

fn records(connection: &Connection, wanted: &str, values: Vec<Value>) -> rusqlite::Result<Vec<JobRecord>> {
    let mut query = connection.prepare(wanted)?;
    query.query_map(params_from_iter(values), |row| parse(row.get(0)?))?.collect()
}

fn parse(record: String) -> rusqlite::Result<JobRecord> {
    cohabit_journal::decode_record(&record).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
    })
}

/// A filter as an SQL condition and its values.
fn conditions(filter: &Filter) -> (String, Vec<Value>) {
    let mut wanted: Vec<(&str, Vec<Value>)> = Vec::new();
    match filter.members_of {
        Some(array) => wanted.push(("number = ? AND array_index IS NOT NULL", vec![number(array)])),
        None => wanted.push(("array_index IS NULL", vec![])),
    }
    if let Some(user) = &filter.user {
        wanted.push(("user = ?", vec![user.clone().into()]));
    }
    if let Some(name) = &filter.name {
        wanted.push(("name = ?", vec![name.clone().into()]));
    }
    if let Some(after) = filter.ended_after {
        wanted.push(("ended_at_us > ?", vec![number(after.as_micros())]));
    }
    if let Some(after) = filter.after {
        let index = after.index.map_or(-1, i64::from);
        wanted.push(("(number, ifnull(array_index, -1)) > (?, ?)", vec![number(after.number), index.into()]));
    }
    // Each state once, however often the filter names it: SQLite limits the parameters of a statement.
    let states: BTreeSet<&str> = filter.states.iter().map(|state| state.word()).collect();
    let one_of = format!("state IN ({})", vec!["?"; states.len()].join(", "));
    if !states.is_empty() {
        wanted.push((&one_of, states.into_iter().map(|state| state.to_owned().into()).collect()));
    }
    let sql = wanted.iter().map(|(condition, _)| *condition).collect::<Vec<_>>().join(" AND ");
    (sql, wanted.into_iter().flat_map(|(_, values)| values).collect())
}

fn number(value: u64) -> Value {
    i64::try_from(value).unwrap_or(i64::MAX).into()
}
