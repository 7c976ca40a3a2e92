//! Marks outcomes as acknowledged, in order and in batches, away from the driver.
//!
//! An acknowledgement that is lost in a crash does no harm: the next daemon reports the rank again.

use cohabit_actor::blocking;
use cohabit_host::rank_directory::RankDirectory;
use cohabit_types::RankId;
use tokio::sync::{mpsc, oneshot};

/// The most outcomes in one batch.
const BATCH: usize = 256;

/// Queues acknowledgements; clones use the same queue. Each rank is queued once, so the queue is no longer
/// than the list of ranks that the core holds.
#[derive(Debug, Clone)]
pub(crate) struct Acknowledgements(mpsc::UnboundedSender<Entry>);

#[derive(Debug)]
enum Entry {
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

    /// The head knows how the rank with this directory ended.
    pub(crate) fn add(&self, rank: RankId, directory: RankDirectory) {
        // The task ends before its senders only when the runtime does.
        let _ = self.0.send(Entry::Acknowledge(rank, directory));
    }

    /// Waits until everything queued before is done.
    pub(crate) async fn drained(&self) {
        let (sender, done) = oneshot::channel();
        let _ = self.0.send(Entry::Drained(sender));
        let _ = done.await;
    }
}

async fn process(mut queue: mpsc::UnboundedReceiver<Entry>, acknowledged: mpsc::UnboundedSender<RankId>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        let entries = std::mem::take(&mut batch);
        let acknowledged = acknowledged.clone();
        blocking(move || entries.into_iter().for_each(|entry| apply(entry, &acknowledged))).await;
    }
}

fn apply(entry: Entry, acknowledged: &mpsc::UnboundedSender<RankId>) {
    match entry {
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
}
