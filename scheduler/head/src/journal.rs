//! The journal: everything that happens to the head, durably and in order, before the head acts on it.
//!
//! The trait is what a head needs of a store; SQLite is the one there is. The history of ended jobs lives in
//! the same store, so that one commit covers both. A journal never interprets events and never repairs
//! itself: what cannot be read is an error, and nothing is overwritten.
//!
//! A snapshot comes in parts, each with a commit of its own, so that no other commit waits long behind it. It
//! is there once all its parts are; the one before it counts until then.

mod load;
mod packed;
mod schema;
mod sqlite;
mod sweep;
mod writer;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use cohabit_scheduler_core::Event;
use cohabit_types::{ColocationSample, JobRecord, Time};

use crate::HeadError;

pub(crate) use packed::{EncodedPart, PartDecodeError};
pub(crate) use sqlite::{SqliteJournal, as_json, failed};
pub(crate) use writer::{Commit, JournalWriteError, JournalWriter};

/// A durable store of what happened to a head.
pub(crate) trait Journal: Send {
    /// The newest snapshot and every event after it.
    fn load(&self) -> Result<JournalContents, HeadError>;

    /// Makes these writes durable, in this order, all of them or none.
    fn commit(&mut self, writes: &[Write]) -> Result<(), HeadError>;
}

/// Something to make durable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Write {
    /// An event that the head will handle next.
    Event(Arc<JournalEntry>),
    /// A part of a snapshot of the head.
    Part {
        /// The number of the last event that the snapshot includes.
        snapshot: u64,
        /// From 0, the head without its jobs.
        number: u32,
        /// The part.
        content: EncodedPart,
    },
    /// A snapshot of the head is there from now on: all its parts were written.
    Snapshot {
        /// The number of the last event that it includes.
        sequence: u64,
        /// When it was taken.
        at: Time,
        /// How many parts it has.
        parts: u32,
    },
    /// A job that ended, for the history; replaces what is known of it.
    Ended(Box<JobRecord>),
    /// How fast ranks got on beside others, for the history.
    Stretches(Vec<ColocationSample>),
    /// Jobs and stretches that ended before this time leave the history.
    Prune(Time),
}

/// An event and when it happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JournalEntry {
    /// When; never before the entry ahead of it.
    pub(crate) at: Time,
    /// What.
    pub(crate) event: Event,
}

impl From<JournalEntry> for Write {
    fn from(entry: JournalEntry) -> Write {
        Write::Event(Arc::new(entry))
    }
}

/// What a journal holds.
#[derive(Debug, PartialEq)]
pub(crate) struct JournalContents {
    /// The newest snapshot.
    pub(crate) snapshot: Option<Snapshot>,
    /// Every event after it, each with its number.
    pub(crate) tail: Vec<(u64, JournalEntry)>,
}

/// A head, in parts.
#[derive(Debug, PartialEq)]
pub(crate) struct Snapshot {
    /// The number of the last event that it includes.
    pub(crate) sequence: u64,
    /// When it was taken.
    pub(crate) at: Time,
    /// The head without its jobs; of earlier formats the head as a whole.
    pub(crate) rest: EncodedPart,
    /// Its jobs.
    pub(crate) parts: Vec<EncodedPart>,
}
