//! Events that become durable together. A batch begins with an event and ends when all messages that were
//! queued behind that event have been handled.
//!
//! A `Flush` message in the driver's own mailbox marks the end. If the mailbox is full, a count of messages
//! ends the batch instead.

use std::sync::Arc;

use cohabit_actor::{Address, ReplyTo};
use cohabit_scheduler_core::Event;

use super::message::Message;
use crate::journal::JournalEntry;

/// A batch is complete after this many messages since its first event, at the latest.
const MAX_MESSAGES: usize = 512;

/// The most events of one commit. Queries wait while they are applied.
const MAX_EVENTS: usize = 512;

/// The events since the last commit.
#[derive(Default)]
pub(super) struct Batch {
    pending: Vec<PendingEvent>,
    /// Messages since the first event.
    messages: usize,
    end: BatchEnd,
}

/// An event, and who waits until the head has handled it.
pub(super) struct PendingEvent {
    /// Shared with the journal, which writes it meanwhile.
    pub(super) entry: Arc<JournalEntry>,
    pub(super) handled: Option<ReplyTo<()>>,
}

/// Where the message is that ends the batch.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchEnd {
    /// It was not sent, or the mailbox was full.
    #[default]
    Absent,
    /// In the mailbox.
    Queued,
    /// It has just arrived.
    Reached,
}

/// What a message means for the batch.
pub(super) fn end_of(message: &Message) -> BatchEnd {
    if matches!(message, Message::Flush) { BatchEnd::Reached } else { BatchEnd::Absent }
}

impl Batch {
    pub(super) fn push(&mut self, pending: PendingEvent) {
        self.pending.push(pending);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether to commit it now, after a message with this meaning was handled.
    pub(super) fn is_complete(&mut self, end: BatchEnd, mailbox: &Address<Message>) -> bool {
        if end == BatchEnd::Reached {
            self.end = BatchEnd::Absent;
        }
        if self.pending.is_empty() {
            return false;
        }
        self.messages += 1;
        if self.end == BatchEnd::Absent && end == BatchEnd::Absent && mailbox.try_tell(Message::Flush).is_ok()
        {
            self.end = BatchEnd::Queued;
        }
        end == BatchEnd::Reached || self.messages >= MAX_MESSAGES
    }

    /// Takes as many events as one commit may have; the rest begin the next batch.
    pub(super) fn take(&mut self) -> Vec<PendingEvent> {
        self.messages = 0;
        let rest = self.pending.split_off(self.pending.len().min(MAX_EVENTS));
        std::mem::replace(&mut self.pending, rest)
    }

    /// Puts back, in front, events that could not be committed.
    pub(super) fn put_back(&mut self, events: Vec<PendingEvent>) {
        self.pending.splice(..0, events);
    }

    /// Removes the events of this kind; those who wait for them get no reply.
    pub(super) fn take_out(&mut self, kind: impl Fn(&Event) -> bool) -> Vec<Arc<JournalEntry>> {
        self.pending.extract_if(.., |it| kind(&it.entry.event)).map(|it| it.entry).collect()
    }
}
