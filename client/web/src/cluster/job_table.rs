//! All jobs that are live or ended lately, as the head last told.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_client::types::{JobId, JobPhase, JobRecord, Span, Time};

use super::job_feed::FeedChanges;

/// How long ended jobs are shown.
pub(crate) const ENDED_FOR: Span = Span::from_secs(86_400);
/// The most ended jobs that are kept: the earliest ends go first.
const MOST_ENDED: usize = 10_000;

/// The jobs, by number. Members of arrays are here once they were placed.
#[derive(Debug, Default)]
pub(crate) struct JobTable {
    jobs: BTreeMap<JobId, JobRecord>,
    ended: BTreeSet<(Time, JobId)>,
}

impl JobTable {
    /// Takes over changes, and forgets what ended long ago.
    pub(crate) fn apply(&mut self, changes: FeedChanges, now: Time) {
        if changes.is_complete {
            *self = JobTable::default();
        }
        changes.jobs.into_iter().for_each(|record| self.put(record));
        while let Some((at, job)) = self.ended.first().copied()
            && (at + ENDED_FOR <= now || self.ended.len() > MOST_ENDED)
        {
            self.ended.remove(&(at, job));
            self.jobs.remove(&job);
        }
    }

    fn put(&mut self, record: JobRecord) {
        let id = record.id;
        if let Some(known) = self.jobs.remove(&id)
            && let Some(at) = known.ended_at
        {
            self.ended.remove(&(at, id));
        }
        let waits = record.state.phase() == JobPhase::Waiting;
        if id.index.is_some() && waits && record.attempt == 0 {
            return;
        }
        if record.state.is_terminal() {
            self.ended.insert((record.ended_at.unwrap_or(record.submitted_at), id));
        }
        self.jobs.insert(id, record);
    }

    pub(crate) fn get(&self, job: JobId) -> Option<&JobRecord> {
        self.jobs.get(&job)
    }

    /// Every job, by number.
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = &JobRecord> {
        self.jobs.values()
    }

    /// Jobs that have not ended.
    pub(crate) fn live(&self) -> impl Iterator<Item = &JobRecord> {
        self.all().filter(|record| !record.state.is_terminal())
    }

    /// Jobs as they were submitted: arrays as a whole, and no members.
    pub(crate) fn submissions(&self) -> impl DoubleEndedIterator<Item = &JobRecord> {
        self.all().filter(|record| record.id.index.is_none())
    }
}
