//! The journal: everything that happens to the head, durably and in order, before the head acts on it.
//!
//! The trait is what a head needs of a store; SQLite is the one there is. The history of ended jobs lives in
//! the same store, so that one commit covers both. A journal never interprets events and never repairs
//! itself: what cannot be read is an error, and nothing is overwritten.

mod load;
mod schema;
mod sqlite;
mod writer;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use cohabit_core::Event;
use cohabit_proto::{JobRecord, Stretch, Time};

use crate::HeadError;

pub(crate) use sqlite::{SqliteJournal, as_json, failed};
pub(crate) use writer::{Commit, JournalWriter, Unwritten};

/// A durable store of what happened to a head.
pub(crate) trait Journal: Send {
    /// The newest snapshot and every event after it.
    fn load(&self) -> Result<Loaded, HeadError>;

    /// Makes these writes durable, in this order, all of them or none.
    fn commit(&mut self, writes: &[Write]) -> Result<(), HeadError>;
}

/// Something to make durable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Write {
    /// An event that the head will handle next.
    Event(Arc<Entry>),
    /// The head, as JSON.
    Snapshot {
        /// The number of the last event that it includes.
        sequence: u64,
        /// When it was taken.
        at: Time,
        /// The head.
        head: String,
    },
    /// A job that ended, for the history; replaces what is known of it.
    Ended(Box<JobRecord>),
    /// How fast ranks got on beside others, for the history.
    Stretches(Vec<Stretch>),
    /// Jobs and stretches that ended before this time leave the history.
    Prune(Time),
}

/// An event and when it happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// When; never before the entry ahead of it.
    pub(crate) at: Time,
    /// What.
    pub(crate) event: Event,
}

impl From<Entry> for Write {
    fn from(entry: Entry) -> Write {
        Write::Event(Arc::new(entry))
    }
}

/// What a journal holds.
#[derive(Debug, PartialEq)]
pub(crate) struct Loaded {
    /// The newest snapshot.
    pub(crate) snapshot: Option<Snapshot>,
    /// Every event after it, each with its number.
    pub(crate) tail: Vec<(u64, Entry)>,
}

/// A head, as JSON.
#[derive(Debug, PartialEq)]
pub(crate) struct Snapshot {
    /// The number of the last event that it includes.
    pub(crate) sequence: u64,
    /// When it was taken.
    pub(crate) at: Time,
    /// The head.
    pub(crate) head: String,
}
