//! What a head needs of a durable store: the trait, what goes in, and what comes back.

use std::sync::Arc;

use cohabit_scheduler_core::{ArchivedPart, Event, MemoryMisfit};
use cohabit_types::{ColocationSample, JobRecord, Time, UsageRecord};

use super::encoded_part::EncodedPart;
use crate::HeadError;
use crate::history::{AccountingWrite, FeedWrite};

/// A durable store of the events of a head.
pub(crate) trait Journal: Send {
    /// The newest snapshot and every event after it.
    fn load(&self) -> Result<JournalContents, HeadError>;

    /// Makes these writes durable, in this order, all of them or none.
    fn commit(&mut self, writes: &[JournalWrite]) -> Result<(), HeadError>;
}

/// One write of a commit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JournalWrite {
    /// An event that the head will handle next.
    Event(Arc<JournalEntry>),
    /// A part of a snapshot.
    Part {
        /// The number of the last event that the snapshot includes.
        snapshot: u64,
        /// From 0; part 0 is the head without its jobs.
        number: u32,
        /// The part.
        content: EncodedPart,
    },
    /// A snapshot whose parts were all written: from now on it counts.
    Snapshot {
        /// The number of the last event that it includes.
        sequence: u64,
        /// The time of that event.
        at: Time,
        /// How many parts it has.
        parts: u32,
    },
    /// The record of a job that ended. Replaces an earlier record of the same job in the history.
    Ended(Box<JobRecord>),
    /// How fast ranks ran beside others, for the history.
    Samples(Vec<ColocationSample>),
    /// Ranks that found no memory left on their device, for the history.
    Misfits(Vec<MemoryMisfit>),
    /// What a rank that ended did with a GPU, for the history. Replaces an earlier row of the same rank.
    Usage(Box<UsageRecord>),
    /// A part of a submission that left memory. Replaces an earlier one.
    Archive(Box<ArchivedPart>),
    /// An entry of the feed. One that is there already stays as it is.
    Feed(FeedWrite),
    /// Something that counts in reports. What was counted already counts no second time.
    Account(AccountingWrite),
    /// Leaves out so many numbers of the feed.
    SkipFeedNumbers(u64),
    /// Removes what is old.
    Prune {
        /// Jobs, samples, misfits and usage of the history that ended before this time.
        history: Time,
        /// Archived submissions that ended before this time.
        archive: Time,
        /// Entries of the feed before this time.
        feed: Time,
    },
    /// Removes the sums for reports of days before this time.
    PruneReports(Time),
}

/// An event and its time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JournalEntry {
    /// Never before the time of the entry before it.
    pub(crate) at: Time,
    /// The event.
    pub(crate) event: Event,
}

impl From<JournalEntry> for JournalWrite {
    fn from(entry: JournalEntry) -> JournalWrite {
        JournalWrite::Event(Arc::new(entry))
    }
}

/// The contents of a journal that recovery needs.
#[derive(Debug, PartialEq)]
pub(crate) struct JournalContents {
    /// The newest snapshot.
    pub(crate) snapshot: Option<LoadedSnapshot>,
    /// Every event after it, each with its number.
    pub(crate) tail: Vec<(u64, JournalEntry)>,
}

/// A snapshot, in parts that are still encoded.
#[derive(Debug, PartialEq)]
pub(crate) struct LoadedSnapshot {
    /// The number of the last event that it includes.
    pub(crate) sequence: u64,
    /// The time of that event.
    pub(crate) at: Time,
    /// The format of its parts.
    pub(crate) format: u32,
    /// The head without its jobs. In formats 1 to 4, the head as a whole.
    pub(crate) rest: EncodedPart,
    /// Its jobs.
    pub(crate) parts: Vec<EncodedPart>,
}
