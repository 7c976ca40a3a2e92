//! Events that become durable together: a batch begins with an event, and ends when all messages that were
//! queued up behind that one have been taken in.
//!
//! Its end is a message in the driver's own mailbox. Where that is full, a count of messages ends the batch
//! instead.

use std::sync::Arc;

use cohabit_actor::{Address, ReplyTo};
use cohabit_scheduler_core::Event;

use super::message::Message;
use crate::journal::JournalEntry;

/// A batch is complete at the latest when this many messages have come since its first event.
const MOST_MESSAGES: usize = 512;

/// The most events of one commit: people's questions wait while they happen.
const MOST_EVENTS: usize = 512;

/// The events since the last commit.
#[derive(Default)]
pub(super) struct Batch {
    pending: Vec<PendingEvent>,
    /// Messages since the first of them.
    messages: usize,
    end: BatchEnd,
}

/// An event, and who wants to know that it was handled.
pub(super) struct PendingEvent {
    /// The journal reads it while it waits here.
    pub(super) entry: Arc<JournalEntry>,
    pub(super) handled: Option<ReplyTo<()>>,
}

/// Where the message is that ends a batch.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchEnd {
    /// Nowhere, or not yet in the mailbox.
    #[default]
    Missing,
    /// In the mailbox.
    Queued,
    /// It has just come.
    Here,
}

/// What a message means for the batch.
pub(super) fn end_of(message: &Message) -> BatchEnd {
    if matches!(message, Message::Flush) { BatchEnd::Here } else { BatchEnd::Missing }
}

impl Batch {
    pub(super) fn push(&mut self, pending: PendingEvent) {
        self.pending.push(pending);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether it is to be committed now, after a message of this meaning was taken in.
    pub(super) fn is_complete(&mut self, end: BatchEnd, mailbox: &Address<Message>) -> bool {
        if end == BatchEnd::Here {
            self.end = BatchEnd::Missing;
        }
        if self.pending.is_empty() {
            return false;
        }
        self.messages += 1;
        if self.end == BatchEnd::Missing
            && end == BatchEnd::Missing
            && mailbox.try_tell(Message::Flush).is_ok()
        {
            self.end = BatchEnd::Queued;
        }
        end == BatchEnd::Here || self.messages >= MOST_MESSAGES
    }

    /// Hands over as many events as one commit may have; what is left is the beginning of the next.
    pub(super) fn take(&mut self) -> Vec<PendingEvent> {
        self.messages = 0;
        let rest = self.pending.split_off(self.pending.len().min(MOST_EVENTS));
        std::mem::replace(&mut self.pending, rest)
    }

    /// Takes back what could not be committed: it comes before everything else.
    pub(super) fn put_back(&mut self, events: Vec<PendingEvent>) {
        self.pending.splice(..0, events);
    }

    /// Takes out the events of this kind; nobody is told that they were handled.
    pub(super) fn take_out(&mut self, kind: impl Fn(&Event) -> bool) -> Vec<Arc<JournalEntry>> {
        self.pending.extract_if(.., |it| kind(&it.entry.event)).map(|it| it.entry).collect()
    }
}
