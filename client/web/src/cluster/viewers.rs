//! What browsers look at now, so that the head is asked for that only.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cohabit_client::types::JobId;
use tokio::sync::Notify;

/// A page that was not asked for again for so long is no longer looked at.
const LOOKED_AT_FOR: Duration = Duration::from_secs(10);

/// When pages were last asked for.
#[derive(Debug, Default)]
pub(crate) struct Viewers {
    seen: Mutex<Seen>,
    woken: Notify,
}

#[derive(Debug, Default)]
struct Seen {
    /// When any page was asked for.
    any: Option<Instant>,
    /// Waiting jobs on pages, and when these were asked for.
    rows: BTreeMap<JobId, Instant>,
    /// The row that was read last.
    read: Option<JobId>,
}

impl Viewers {
    /// A page with these waiting jobs is looked at.
    pub(crate) fn look(&self, now: Instant, waiting: impl IntoIterator<Item = JobId>) {
        let mut seen = self.lock();
        seen.rows.extend(waiting.into_iter().map(|job| (job, now)));
        let was_watched = seen.is_watched(now);
        seen.any = Some(now);
        drop(seen);
        if !was_watched {
            self.woken.notify_one();
        }
    }

    /// Whether anybody looks.
    pub(crate) fn is_watched(&self, now: Instant) -> bool {
        self.lock().is_watched(now)
    }

    /// Waits until somebody begins to look.
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }

    /// At most so many of the waiting jobs that are looked at, in turn.
    pub(crate) fn next_rows(&self, now: Instant, most: usize) -> Vec<JobId> {
        let mut seen = self.lock();
        seen.rows.retain(|_, at| now.saturating_duration_since(*at) < LOOKED_AT_FOR);
        let from = seen.read.map_or(Bound::Unbounded, Bound::Excluded);
        let later = seen.rows.range((from, Bound::Unbounded)).map(|(job, _)| *job);
        let earlier = seen.rows.keys().copied();
        let mut rows: Vec<JobId> = later.chain(earlier).take(most.min(seen.rows.len())).collect();
        seen.read = rows.last().copied();
        rows.sort_unstable();
        rows
    }

    /// No panic leaves it half-written.
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn is_watched(&self, now: Instant) -> bool {
        self.any.is_some_and(|at| now.saturating_duration_since(at) < LOOKED_AT_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rows: Vec<JobId>) -> Vec<u64> {
        rows.into_iter().map(|job| job.number).collect()
    }

    #[test]
    fn rows_are_read_in_turn_while_they_are_looked_at() {
        let (viewers, now) = (Viewers::default(), Instant::now());
        assert!(!viewers.is_watched(now) && viewers.next_rows(now, 2).is_empty());
        viewers.look(now, (1..=3).map(JobId::new));
        assert!(viewers.is_watched(now));
        assert_eq!(numbers(viewers.next_rows(now, 2)), [1, 2]);
        assert_eq!(numbers(viewers.next_rows(now, 2)), [1, 3]);
        assert_eq!(numbers(viewers.next_rows(now, 9)), [1, 2, 3]);
        let later = now + LOOKED_AT_FOR;
        assert!(!viewers.is_watched(later) && viewers.next_rows(later, 2).is_empty());
    }
}
