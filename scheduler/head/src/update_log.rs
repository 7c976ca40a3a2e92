//! The order in which jobs last changed, so that a client that shows all of them learns at the cost of what
//! changed what has.
//!
//! The log holds ids, each once at its latest change, and no records: a reader asks for those. It is bounded:
//! whoever reads too seldom has to list all jobs again. The driver writes while sessions read, and neither
//! holds the lock for long.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cohabit_types::{JobId, UpdateCursor};
use uuid::Uuid;

/// As many jobs as the log holds: some 6 MB.
const MOST_JOBS: usize = 65_536;

/// The log; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct UpdateLog(Arc<Mutex<LoggedUpdates>>);

#[derive(Debug)]
struct LoggedUpdates {
    run: u64,
    /// The number of the latest update.
    last: u64,
    /// The number of the latest update that was dropped.
    dropped: u64,
    most: usize,
    jobs: BTreeMap<u64, JobId>,
    positions: HashMap<JobId, u64>,
}

impl Default for UpdateLog {
    fn default() -> UpdateLog {
        UpdateLog::with_room(MOST_JOBS)
    }
}

impl UpdateLog {
    fn with_room(most: usize) -> UpdateLog {
        let (run, _) = Uuid::new_v4().as_u64_pair();
        let (jobs, positions) = (BTreeMap::new(), HashMap::new());
        UpdateLog(Arc::new(Mutex::new(LoggedUpdates { run, last: 0, dropped: 0, most, jobs, positions })))
    }

    /// Writes down that this job has changed.
    pub(crate) fn push(&self, job: JobId) {
        let mut log = self.lock();
        log.last += 1;
        let position = log.last;
        if let Some(earlier) = log.positions.insert(job, position) {
            log.jobs.remove(&earlier);
        }
        log.jobs.insert(position, job);
        if log.jobs.len() > log.most
            && let Some((dropped, job)) = log.jobs.pop_first()
        {
            log.positions.remove(&job);
            log.dropped = dropped;
        }
    }

    /// The cursor behind the latest update.
    pub(crate) fn end(&self) -> UpdateCursor {
        let log = self.lock();
        UpdateCursor { run: log.run, position: log.last }
    }

    /// At most so many updates after this cursor; none where some of them are no longer there.
    pub(crate) fn after(&self, cursor: UpdateCursor, most: usize) -> Option<Vec<(u64, JobId)>> {
        let log = self.lock();
        let is_known = cursor.run == log.run && (log.dropped..=log.last).contains(&cursor.position);
        is_known.then(|| {
            let later = log.jobs.range((Bound::Excluded(cursor.position), Bound::Unbounded));
            later.take(most).map(|(position, job)| (*position, *job)).collect()
        })
    }

    /// No panic leaves the log half-written.
    fn lock(&self) -> MutexGuard<'_, LoggedUpdates> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(log: &UpdateLog, jobs: &[u64]) {
        jobs.iter().for_each(|job| log.push(JobId::new(*job)));
    }

    fn jobs_after(log: &UpdateLog, cursor: UpdateCursor, most: usize) -> Option<Vec<u64>> {
        Some(log.after(cursor, most)?.into_iter().map(|(_, job)| job.number).collect())
    }

    #[test]
    fn a_job_is_listed_once_at_its_latest_change() {
        let log = UpdateLog::default();
        let start = log.end();
        pushed(&log, &[1, 2, 1, 3]);
        assert_eq!(jobs_after(&log, start, 10), Some(vec![2, 1, 3]));
        assert_eq!(jobs_after(&log, start, 2), Some(vec![2, 1]));
        assert_eq!(jobs_after(&log, log.end(), 10), Some(Vec::new()));
    }

    #[test]
    fn a_reader_who_comes_too_late_or_from_another_run_is_told_so() {
        let log = UpdateLog::with_room(2);
        let start = log.end();
        pushed(&log, &[1, 2]);
        assert_eq!(jobs_after(&log, start, 10), Some(vec![1, 2]));
        pushed(&log, &[3]);
        assert_eq!(log.after(start, 10), None, "the change of job 1 is no longer there");
        assert_eq!(jobs_after(&log, UpdateCursor { position: 1, ..start }, 10), Some(vec![2, 3]));
        assert_eq!(UpdateLog::default().after(log.end(), 10), None);
        assert_eq!(log.after(UpdateCursor { position: 9, ..start }, 10), None);
    }
}
