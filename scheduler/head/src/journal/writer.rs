//! The thread that owns the journal: whatever is queued up when it is free shares one commit.

use std::io;

use cohabit_actor::{Address, ReplyTo};

use super::{Journal, Write};
use crate::HeadError;
use crate::actor_thread::{self, ActorThread, Inbox};

/// How many commits may wait.
const CAPACITY: usize = 64;

/// Please make these durable, and say when they are.
#[derive(Debug)]
pub(crate) struct Commit {
    /// In this order, all of them or none.
    pub(crate) writes: Vec<Write>,
    /// Told what came of it, if somebody waits. Dropped if the journal can never be written again: the writer
    /// has ended then.
    pub(crate) durable: Option<ReplyTo<Result<(), JournalWriteError>>>,
}

/// Why the journal could not be written this time; trying again may help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct JournalWriteError(String);

/// The running thread.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    /// Where commits go.
    pub(crate) address: Address<Commit>,
    thread: ActorThread,
    failure: std::sync::mpsc::Receiver<HeadError>,
}

impl JournalWriter {
    /// Gives the journal a thread of its own.
    pub(crate) fn start(journal: impl Journal + 'static) -> io::Result<JournalWriter> {
        let (report, failure) = std::sync::mpsc::channel();
        let (address, thread) = actor_thread::spawn("journal", CAPACITY, move |inbox| {
            if let Err(error) = write_all(journal, inbox) {
                tracing::error!(%error, "the journal cannot be written, and the head ends");
                // Nobody listens when the head is ending anyway.
                let _ = report.send(error);
            }
        })?;
        Ok(JournalWriter { address, thread, failure })
    }

    /// Commits what is queued, closes the journal, and tells why it failed, if it did.
    pub(crate) fn close(self) -> Result<(), HeadError> {
        self.thread.join();
        self.failure.try_recv().map_or(Ok(()), Err)
    }
}

/// Ends with the first failure that will not pass: after it nothing may be acknowledged any more. After one
/// that may pass, whoever waits is told, and what nobody waits for is written with the next commit.
fn write_all(mut journal: impl Journal, mut inbox: Inbox<Commit>) -> Result<(), HeadError> {
    let mut kept = Vec::new();
    while let Some(first) = inbox.next() {
        let mut batch = vec![first];
        batch.extend(std::iter::from_fn(|| inbox.next_queued()));
        kept = write(&mut journal, kept, batch)?;
    }
    if kept.is_empty() { Ok(()) } else { journal.commit(&kept) }
}

/// One commit for all of these; gives back what is to be written with the next.
fn write(journal: &mut impl Journal, kept: Vec<Write>, batch: Vec<Commit>) -> Result<Vec<Write>, HeadError> {
    // What nobody waits for is the consequence of events that are durable already.
    let (awaited, history): (Vec<Commit>, Vec<Commit>) =
        batch.into_iter().partition(|it| it.durable.is_some());
    let mut writes = kept;
    writes.extend(history.into_iter().flat_map(|it| it.writes));
    let kept = writes.len();
    let mut waiting = Vec::with_capacity(awaited.len());
    for Commit { writes: more, durable } in awaited {
        writes.extend(more);
        waiting.extend(durable);
    }
    let (came_of_it, kept) = match journal.commit(&writes) {
        Ok(()) => (Ok(()), Vec::new()),
        Err(error) if error.is_transient() => {
            writes.truncate(kept);
            (Err(JournalWriteError(error.message_with_causes())), writes)
        }
        Err(error) => return Err(error),
    };
    // Whoever is told may want its events for itself.
    waiting.into_iter().for_each(|durable| durable.send(came_of_it.clone()));
    Ok(kept)
}
