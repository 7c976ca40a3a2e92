//! The members of a sweep, with what they have reported of their metrics.
//!
//! Reports stay with the workers, like logs. Those of a member are read again only when it has reported
//! something; those on a node that is away are missing until it is back.

use std::collections::BTreeMap;

use cohabit_client::types::{Filter, JobId, JobRecord, JobState, MetricSeries, RankId, Sweep, Time};
use cohabit_client::{Client, Error};
use cohabit_console::CommandError;
use futures::{StreamExt as _, stream};

use crate::sweep::early_stopping::{MemberReports, MetricReport, StopDecision, decide};

/// How many ranks are asked at once.
const AT_ONCE: usize = 8;

/// The members, by index.
pub(super) struct MembersReader {
    client: Client,
    array: JobId,
    pub(super) members: BTreeMap<JobId, SweepMember>,
}

/// One member.
pub(super) struct SweepMember {
    pub(super) record: JobRecord,
    /// The series of each attempt.
    series: BTreeMap<u32, MetricSeries>,
    /// What the record said when its series were read.
    read_at: Option<ReadMark>,
}

/// Changes when there is something new to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReadMark {
    attempt: u32,
    reported: Option<(u64, Time)>,
    has_ended: bool,
}

impl ReadMark {
    fn of(record: &JobRecord) -> ReadMark {
        ReadMark {
            attempt: record.attempt,
            reported: record.progress.as_ref().map(|it| (it.step, it.at)),
            has_ended: record.state.is_terminal(),
        }
    }
}

impl MembersReader {
    pub(super) fn new(client: &Client, array: JobId) -> MembersReader {
        MembersReader { client: client.clone(), array, members: BTreeMap::new() }
    }

    /// Reads states and progress of all members, and what they have reported since.
    pub(super) async fn refresh(&mut self) -> Result<(), CommandError> {
        let members = Filter { members_of: Some(self.array.number), ..Filter::default() };
        for record in self.client.list_all(members).await? {
            let member = self.members.entry(record.id).or_insert_with(|| SweepMember {
                record: record.clone(),
                series: BTreeMap::new(),
                read_at: None,
            });
            member.record = record;
        }
        self.read_series().await
    }

    async fn read_series(&mut self) -> Result<(), CommandError> {
        let wanted: Vec<RankId> = self.members.values().flat_map(SweepMember::unread).collect();
        let client = &self.client;
        let asked = wanted.into_iter().map(|rank| async move { (rank, client.metrics(rank).await) });
        let answers: Vec<_> = stream::iter(asked).buffer_unordered(AT_ONCE).collect().await;
        let mut missing = Vec::new();
        for (rank, answer) in answers {
            let (job, attempt) = (rank.attempt.job, rank.attempt.attempt);
            match (answer, self.members.get_mut(&job)) {
                (Ok(series), Some(member)) => drop(member.series.insert(attempt, series)),
                (Ok(_), None) => {}
                (Err(Error::Refused(_)), _) => missing.push(job),
                (Err(error), _) => return Err(error.into()),
            }
        }
        for (id, member) in &mut self.members {
            let is_read = !missing.contains(id);
            member.read_at = if is_read { Some(ReadMark::of(&member.record)) } else { member.read_at };
        }
        Ok(())
    }

    /// The members that the rule of the sweep stops, in its order.
    pub(super) fn decisions(&self, sweep: &Sweep) -> Vec<(JobId, StopDecision)> {
        let (Some(metric), Some(rule)) = (&sweep.metric, sweep.early_stopping) else { return Vec::new() };
        let reports: Vec<MemberReports> = self.members.values().map(|it| it.reports_of(metric)).collect();
        let ids: Vec<JobId> = self.members.keys().copied().collect();
        decide(rule, sweep.goal, &reports).into_iter().map(|it| (ids[it.member], it)).collect()
    }
}

impl SweepMember {
    /// The ranks whose metrics are to be read.
    fn unread(&self) -> Vec<RankId> {
        let mark = ReadMark::of(&self.record);
        if mark.attempt == 0 || self.read_at == Some(mark) || (mark.reported.is_none() && !mark.has_ended) {
            return Vec::new();
        }
        let attempts = 1..=mark.attempt;
        // An earlier attempt reports nothing more.
        let wanted = attempts.filter(|it| *it == mark.attempt || !self.series.contains_key(it));
        wanted.map(|attempt| self.record.id.attempt(attempt).rank(0)).collect()
    }

    /// What it reported of this metric in all attempts. An attempt that went back to an earlier step replaces
    /// what the attempts before it said of the steps from there on.
    pub(super) fn reports_of(&self, metric: &str) -> MemberReports {
        let mut reports: Vec<MetricReport> = Vec::new();
        for series in self.series.values() {
            let column = series.names.iter().position(|name| name == metric);
            let value = |row: &cohabit_client::types::MetricRow| *row.values.get(column?)?;
            let mut own = series
                .rows
                .iter()
                .filter_map(|row| Some(MetricReport { step: row.step, at: row.at, value: value(row)?.0 }));
            let Some(first) = own.next() else { continue };
            reports.retain(|it| it.step < first.step);
            reports.push(first);
            reports.extend(own);
        }
        let completed = self.record.state == JobState::Completed;
        MemberReports { reports, completed_at: self.record.ended_at.filter(|_| completed) }
    }

    /// The names of the metrics that it has reported.
    pub(super) fn metrics(&self) -> impl Iterator<Item = &String> {
        let last = self.record.progress.iter().flat_map(|it| it.metrics.keys());
        self.series.values().flat_map(|it| &it.names).chain(last)
    }
}
