//! The thread that owns the journal: whatever is queued up when it is free shares one commit.

use std::io;

use cohabit_actor::{Address, Reply};

use super::{Journal, Write};
use crate::HeadError;
use crate::thread::{self, Inbox, Thread};

/// How many commits may wait.
const CAPACITY: usize = 64;

/// Please make these durable, and say when they are.
#[derive(Debug)]
pub(crate) struct Commit {
    /// In this order, all of them or none.
    pub(crate) writes: Vec<Write>,
    /// Told once they are durable, if somebody waits. Dropped if they cannot be made so: the writer has ended
    /// then.
    pub(crate) durable: Option<Reply<()>>,
}

/// The running thread.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    /// Where commits go.
    pub(crate) address: Address<Commit>,
    thread: Thread,
    failure: std::sync::mpsc::Receiver<HeadError>,
}

impl JournalWriter {
    /// Gives the journal a thread of its own.
    pub(crate) fn start(journal: impl Journal + 'static) -> io::Result<JournalWriter> {
        let (report, failure) = std::sync::mpsc::channel();
        let (address, thread) = thread::spawn("journal", CAPACITY, move |inbox| {
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

/// Ends with the first failure: after it nothing may be acknowledged any more.
fn write_all(mut journal: impl Journal, mut inbox: Inbox<Commit>) -> Result<(), HeadError> {
    while let Some(first) = inbox.next() {
        let (mut writes, mut durable) = (first.writes, vec![first.durable]);
        while let Some(more) = inbox.next_queued() {
            writes.extend(more.writes);
            durable.push(more.durable);
        }
        journal.commit(&writes)?;
        durable.into_iter().flatten().for_each(|reply| reply.send(()));
    }
    Ok(())
}
