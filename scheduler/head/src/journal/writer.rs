//! The thread that owns the journal. Everything that is queued when it is free goes into one commit.

use std::io;

use cohabit_actor::{Address, ReplyTo};
use tokio::sync::watch;

use super::store::{Journal, JournalWrite};
use crate::HeadError;
use crate::actor_thread::{self, ActorThread, Inbox};

/// How many commits may be queued.
const CAPACITY: usize = 64;

/// Makes these writes durable.
#[derive(Debug)]
pub(crate) struct Commit {
    /// Follows from events that are durable already. Written first; if that fails, it goes with a later
    /// commit.
    pub(crate) history: Vec<JournalWrite>,
    /// Written in this order, all of them or none.
    pub(crate) writes: Vec<JournalWrite>,
    /// Receives the outcome, if somebody waits for it, as for all but history. It is dropped when the journal
    /// has failed for good: then the writer has ended.
    pub(crate) durable: Option<ReplyTo<Result<(), JournalWriteError>>>,
}

/// Why a commit failed, where a later one may succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct JournalWriteError(String);

/// Handle to the running thread.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    /// The address for commits.
    pub(crate) address: Address<Commit>,
    thread: ActorThread,
    failure: std::sync::mpsc::Receiver<HeadError>,
    /// Changes when the feed was written to.
    pub(crate) feed: watch::Receiver<()>,
}

impl JournalWriter {
    /// Moves the journal to a thread of its own.
    pub(crate) fn start(journal: impl Journal + 'static) -> io::Result<JournalWriter> {
        let (report, failure) = std::sync::mpsc::channel();
        let (written, feed) = watch::channel(());
        let (address, thread) = actor_thread::spawn("journal", CAPACITY, move |inbox| {
            if let Err(error) = write_all(journal, inbox, &written) {
                tracing::error!(%error, "the journal cannot be written, and the head stops");
                // Nobody listens if the head is already stopping.
                let _ = report.send(error);
            }
        })?;
        Ok(JournalWriter { address, thread, failure, feed })
    }

    /// Commits what is queued and closes the journal. Returns the failure that ended the thread, if one did.
    pub(crate) fn close(self) -> Result<(), HeadError> {
        self.thread.join();
        self.failure.try_recv().map_or(Ok(()), Err)
    }
}

/// Ends with the first permanent failure: after it, nothing may be acknowledged any more. After a transient
/// one, waiters get the failure, and history goes with the next commit.
fn write_all(
    mut journal: impl Journal,
    mut inbox: Inbox<Commit>,
    feed: &watch::Sender<()>,
) -> Result<(), HeadError> {
    let mut kept = Vec::new();
    while let Some(first) = inbox.next() {
        let mut batch = vec![first];
        batch.extend(std::iter::from_fn(|| inbox.next_queued()));
        kept = write_batch(&mut journal, kept, batch, feed)?;
    }
    if kept.is_empty() { Ok(()) } else { journal.commit(&kept) }
}

/// Commits a batch at once. Returns the writes that must go with the next commit.
fn write_batch(
    journal: &mut impl Journal,
    kept: Vec<JournalWrite>,
    batch: Vec<Commit>,
    feed: &watch::Sender<()>,
) -> Result<Vec<JournalWrite>, HeadError> {
    let (mut writes, mut awaited, mut waiting) = (kept, Vec::new(), Vec::with_capacity(batch.len()));
    for Commit { history, writes: more, durable } in batch {
        writes.extend(history);
        awaited.extend(more);
        waiting.extend(durable);
    }
    let kept = writes.len();
    writes.extend(awaited);
    let (outcome, kept) = match journal.commit(&writes) {
        Ok(()) => {
            if writes.iter().any(|write| matches!(write, JournalWrite::Feed(_))) {
                feed.send_replace(());
            }
            // Before any reply: the driver takes its events out of their `Arc` without a copy.
            drop(writes);
            (Ok(()), Vec::new())
        }
        Err(error) if error.is_transient() => {
            writes.truncate(kept);
            (Err(JournalWriteError(error.message_with_causes())), writes)
        }
        Err(error) => return Err(error),
    };
    waiting.into_iter().for_each(|durable| durable.send(outcome.clone()));
    Ok(kept)
}
