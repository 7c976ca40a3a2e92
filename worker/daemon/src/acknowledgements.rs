//! Marks outcomes as acknowledged, in order and in batches, away from the driver. Flushes those to disk that
//! are not acknowledged soon.
//!
//! An acknowledgement that is lost in a crash does no harm: the next daemon reports the rank again.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_host::rank_directory::RankDirectory;
use cohabit_types::RankId;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// The most outcomes in one batch.
const BATCH: usize = 256;

/// Outcomes that the head has not acknowledged after this time are flushed to disk.
const FLUSH_DELAY: Duration = Duration::from_secs(1);

/// Queues acknowledgements; clones use the same queue. Each rank is queued twice, so the queue is no longer
/// than twice the list of ranks that the core holds.
#[derive(Debug, Clone)]
pub(crate) struct Acknowledgements(mpsc::UnboundedSender<Entry>);

#[derive(Debug)]
enum Entry {
    /// The outcome is in the directory.
    Ended(RankId, RankDirectory),
    Acknowledge(RankId, RankDirectory),
    /// Answered when all earlier entries are done.
    Drained(oneshot::Sender<()>),
}

impl Acknowledgements {
    /// Starts the task that processes the queue and passes the ranks on. It ends when all clones are dropped.
    pub(crate) fn start(acknowledged: mpsc::UnboundedSender<RankId>) -> Acknowledgements {
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(process(receiver, acknowledged));
        Acknowledgements(sender)
    }

    /// The outcome of the rank is in this directory, and not on disk.
    pub(crate) fn expect(&self, rank: RankId, directory: RankDirectory) {
        self.queue(Entry::Ended(rank, directory));
    }

    /// The head knows how the rank with this directory ended.
    pub(crate) fn add(&self, rank: RankId, directory: RankDirectory) {
        self.queue(Entry::Acknowledge(rank, directory));
    }

    /// Waits until everything queued before is done.
    pub(crate) async fn drained(&self) {
        let (sender, done) = oneshot::channel();
        self.queue(Entry::Drained(sender));
        let _ = done.await;
    }

    fn queue(&self, entry: Entry) {
        // The task ends before its senders only when the runtime does.
        let _ = self.0.send(entry);
    }
}

async fn process(mut queue: mpsc::UnboundedReceiver<Entry>, acknowledged: mpsc::UnboundedSender<RankId>) {
    let (mut batch, mut expected) = (Vec::new(), ExpectedAcknowledgements::default());
    loop {
        tokio::select! {
            received = queue.recv_many(&mut batch, BATCH) => {
                if received == 0 {
                    return;
                }
                batch.iter().for_each(|entry| expected.note(entry));
                batch.retain(|entry| !matches!(entry, Entry::Ended(..)));
                let (entries, acknowledged) = (std::mem::take(&mut batch), acknowledged.clone());
                if !entries.is_empty() {
                    blocking(move || entries.into_iter().for_each(|entry| apply(entry, &acknowledged))).await;
                }
            }
            () = expected.first_is_late() => {
                let late = expected.take_late();
                if !late.is_empty() {
                    blocking(move || late.iter().for_each(flush)).await;
                }
            }
        }
    }
}

/// The outcomes that are not acknowledged, and not flushed.
#[derive(Default)]
struct ExpectedAcknowledgements {
    directories: BTreeMap<RankId, RankDirectory>,
    /// In the order of their ends. Those that were acknowledged meanwhile are passed over.
    ends: VecDeque<(Instant, RankId)>,
}

impl ExpectedAcknowledgements {
    fn note(&mut self, entry: &Entry) {
        match entry {
            Entry::Ended(rank, directory) => {
                self.directories.insert(*rank, directory.clone());
                self.ends.push_back((Instant::now(), *rank));
            }
            Entry::Acknowledge(rank, _) => _ = self.directories.remove(rank),
            Entry::Drained(_) => {}
        }
    }

    /// Waits until the first has waited for too long.
    async fn first_is_late(&self) {
        match self.ends.front() {
            Some((since, _)) => sleep_until(*since + FLUSH_DELAY).await,
            None => std::future::pending().await,
        }
    }

    fn take_late(&mut self) -> Vec<RankDirectory> {
        let late = self.ends.iter().take_while(|(since, _)| since.elapsed() >= FLUSH_DELAY).count();
        self.ends.drain(..late).filter_map(|(_, rank)| self.directories.remove(&rank)).collect()
    }
}

fn flush(directory: &RankDirectory) {
    if let Err(error) = directory.flush_ended() {
        tracing::warn!(directory = %directory.path().display(), %error, "an outcome may not survive a power cut");
    }
}

fn apply(entry: Entry, acknowledged: &mpsc::UnboundedSender<RankId>) {
    match entry {
        Entry::Ended(..) => {}
        Entry::Acknowledge(rank, directory) => match directory.acknowledge() {
            // Without a receiver the daemon is stopping: the next one examines all ranks.
            Ok(()) => _ = acknowledged.send(rank),
            Err(error) => {
                let directory = directory.path().display();
                tracing::warn!(%directory, %error, "an acknowledged rank will be reported again");
            }
        },
        // The caller may have given up.
        Entry::Drained(done) => _ = done.send(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cohabit_types::JobId;

    use super::*;

    #[tokio::test]
    async fn outcomes_are_renamed_before_the_queue_is_drained() {
        let folder = tempfile::tempdir().unwrap();
        let (acknowledged, mut ranks) = mpsc::unbounded_channel();
        let queue = Acknowledgements::start(acknowledged);
        let directories = ["1", "2", "3"].map(|name| RankDirectory::new(folder.path().join(name)));
        for (job, directory) in (1..).zip(&directories) {
            fs::create_dir(directory.path()).unwrap();
            fs::write(directory.path().join("outcome.json"), "{}").unwrap();
            queue.add(JobId::new(job).attempt(1).rank(0), directory.clone());
        }
        queue.drained().await;
        assert!(directories.iter().all(RankDirectory::is_acknowledged));
        assert_eq!(ranks.try_recv().unwrap().attempt.job, JobId::new(1));
    }

    #[tokio::test]
    async fn an_outcome_is_flushed_unless_it_is_acknowledged_in_time() {
        tokio::time::pause();
        let mut expected = ExpectedAcknowledgements::default();
        let [first, second, third] = [1, 2, 3].map(|job| JobId::new(job).attempt(1).rank(0));
        let directory = |rank: RankId| RankDirectory::for_rank("/ranks".as_ref(), rank);
        for rank in [first, second] {
            expected.note(&Entry::Ended(rank, directory(rank)));
        }
        tokio::time::advance(FLUSH_DELAY / 2).await;
        expected.note(&Entry::Ended(third, directory(third)));
        expected.note(&Entry::Acknowledge(first, directory(first)));
        assert!(expected.take_late().is_empty());
        expected.first_is_late().await;
        let late = expected.take_late();
        assert_eq!(late.iter().map(|it| it.path()).collect::<Vec<_>>(), [directory(second).path()]);
        expected.first_is_late().await;
        assert_eq!(expected.take_late()[0].path(), directory(third).path());
    }
}
