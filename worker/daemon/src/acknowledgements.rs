//! Marks outcomes as acknowledged, in order and in batches, away from the driver.
//!
//! An acknowledgement that is lost in a crash does no harm: the next daemon reports the rank again.

use cohabit_actor::blocking;
use cohabit_host::rank_directory::RankDirectory;
use tokio::sync::{mpsc, oneshot};

/// The most outcomes in one batch.
const BATCH: usize = 256;

/// Queues acknowledgements; clones use the same queue. Each rank is queued once, so the queue is no longer
/// than the list of ranks that the core holds.
#[derive(Debug, Clone)]
pub(crate) struct Acknowledgements(mpsc::UnboundedSender<Entry>);

#[derive(Debug)]
enum Entry {
    Acknowledge(RankDirectory),
    /// Answered when all earlier entries are done.
    Drained(oneshot::Sender<()>),
}

impl Acknowledgements {
    /// Starts the task that processes the queue. It ends when all clones are dropped.
    pub(crate) fn start() -> Acknowledgements {
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(process(receiver));
        Acknowledgements(sender)
    }

    /// The head knows how the rank of this directory ended.
    pub(crate) fn add(&self, directory: RankDirectory) {
        // The task ends before its senders only when the runtime does.
        let _ = self.0.send(Entry::Acknowledge(directory));
    }

    /// Waits until everything queued before is done.
    pub(crate) async fn drained(&self) {
        let (sender, done) = oneshot::channel();
        let _ = self.0.send(Entry::Drained(sender));
        let _ = done.await;
    }
}

async fn process(mut queue: mpsc::UnboundedReceiver<Entry>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, BATCH).await > 0 {
        let entries = std::mem::take(&mut batch);
        blocking(move || entries.into_iter().for_each(apply)).await;
    }
}

fn apply(entry: Entry) {
    match entry {
        Entry::Acknowledge(directory) => {
            if let Err(error) = directory.acknowledge() {
                let directory = directory.path().display();
                tracing::warn!(%directory, %error, "an acknowledged rank will be reported again");
            }
        }
        // The caller may have given up.
        Entry::Drained(done) => _ = done.send(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn outcomes_are_renamed_before_the_queue_is_drained() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Acknowledgements::start();
        let directories = ["1", "2", "3"].map(|name| RankDirectory::new(folder.path().join(name)));
        for directory in &directories {
            fs::create_dir(directory.path()).unwrap();
            fs::write(directory.path().join("outcome.json"), "{}").unwrap();
            queue.add(directory.clone());
        }
        queue.drained().await;
        assert!(directories.iter().all(RankDirectory::is_acknowledged));
    }
}
