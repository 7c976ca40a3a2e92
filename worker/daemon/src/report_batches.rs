//! Reports in batches for the head, which makes each batch durable at once.
//!
//! Where short ranks run, word of their starts and ends waits a few milliseconds for that of the others: the
//! head needs about as long for one rank as for all ranks of a batch.

use std::collections::BTreeMap;
use std::time::Duration;

use cohabit_types::{RankId, Report};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// The most reports in one batch.
const BATCH: usize = 256;

/// How long a batch waits for more, at most.
const HOLD: Duration = Duration::from_millis(5);

/// A rank that has run for longer is not waited for.
const RECENT: Duration = Duration::from_millis(10);

/// Takes reports out of a queue.
pub(crate) struct ReportBatches {
    reports: mpsc::Receiver<Report>,
    /// The ranks that may end soon, with the times at which their starts came.
    recent: BTreeMap<RankId, Instant>,
}

impl ReportBatches {
    pub(crate) const fn of(reports: mpsc::Receiver<Report>) -> ReportBatches {
        ReportBatches { reports, recent: BTreeMap::new() }
    }

    /// The next batch, in order; `None` when no more will come.
    pub(crate) async fn next(&mut self) -> Option<Vec<Report>> {
        let mut batch = Vec::new();
        if self.reports.recv_many(&mut batch, BATCH).await == 0 {
            return None;
        }
        let (deadline, mut seen) = (Instant::now() + HOLD, 0);
        loop {
            self.note(&batch[seen..]);
            seen = batch.len();
            if !self.may_wait(&batch) {
                return Some(batch);
            }
            let more = self.reports.recv_many(&mut batch, BATCH - seen);
            // A queue that was closed is empty at the next call, too.
            if !matches!(timeout_at(deadline, more).await, Ok(1..)) {
                return Some(batch);
            }
        }
    }

    fn note(&mut self, reports: &[Report]) {
        for report in reports {
            if let Report::Started { rank, .. } = report {
                self.recent.insert(*rank, Instant::now());
            } else if let Report::Ended { rank, .. } = report {
                self.recent.remove(rank);
            }
        }
        self.recent.retain(|_, since| since.elapsed() < RECENT);
    }

    fn may_wait(&self, batch: &[Report]) -> bool {
        let may_be_held = |report| matches!(report, &Report::Started { .. } | &Report::Ended { .. });
        !self.recent.is_empty() && batch.len() < BATCH && batch.iter().all(may_be_held)
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{JobId, Outcome, Time};
    use tokio::time::{advance, pause};

    use super::*;

    fn rank(number: u64) -> RankId {
        JobId::new(number).attempt(1).rank(0)
    }

    fn started(number: u64) -> Report {
        Report::Started { rank: rank(number), at: Time::EPOCH }
    }

    fn ended(number: u64) -> Report {
        let (rank, outcome, at) = (rank(number), Outcome::Exited(0), Time::EPOCH);
        Report::Ended { rank, outcome, stopped: None, progress: None, at, usage: Vec::new() }
    }

    fn batches() -> (mpsc::Sender<Report>, ReportBatches) {
        pause();
        let (sender, reports) = mpsc::channel(1_000);
        (sender, ReportBatches::of(reports))
    }

    #[tokio::test]
    async fn starts_and_ends_of_short_ranks_go_together() {
        let (sender, mut batches) = batches();
        tokio::spawn(async move {
            for report in [started(1), started(2), ended(1), started(3), ended(3), ended(2)] {
                sender.send(report).await.unwrap();
                tokio::task::yield_now().await;
            }
            std::future::pending::<()>().await;
        });
        let begin = Instant::now();
        assert_eq!(batches.next().await.unwrap().len(), 6);
        assert!(begin.elapsed() < HOLD, "nothing runs that could end soon");
    }

    #[tokio::test]
    async fn the_start_of_a_long_rank_waits_for_a_moment_and_its_end_not_at_all() {
        let (sender, mut batches) = batches();
        let begin = Instant::now();
        sender.try_send(started(1)).unwrap();
        assert_eq!(batches.next().await.unwrap(), [started(1)]);
        assert!(begin.elapsed() >= HOLD);
        advance(Duration::from_secs(60)).await;
        let begin = Instant::now();
        sender.try_send(ended(1)).unwrap();
        assert_eq!(batches.next().await.unwrap(), [ended(1)]);
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn other_reports_wait_for_nothing() {
        let (sender, mut batches) = batches();
        let begin = Instant::now();
        let progress = Report::Progress(Vec::new());
        for report in [started(1), progress.clone()] {
            sender.try_send(report).unwrap();
        }
        assert_eq!(batches.next().await.unwrap(), [started(1), progress]);
        assert_eq!(begin.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn batches_are_bounded_and_lose_nothing() {
        let (sender, mut batches) = batches();
        (0..600).for_each(|number| sender.try_send(started(number)).unwrap());
        drop(sender);
        let mut all = Vec::new();
        while let Some(batch) = batches.next().await {
            assert!(batch.len() <= BATCH);
            all.extend(batch);
        }
        assert_eq!(all, (0..600).map(started).collect::<Vec<_>>());
    }
}
