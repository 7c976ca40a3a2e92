//! Recovers a head from its journal: it decodes the newest snapshot and replays the events after it.
//!
//! Replay goes through [`Head::handle`], as every event does; no second code restores state. The effects are
//! dropped: workers that join again say what runs, and clients ask again. Only what goes to the history is
//! kept, which may have missed it: records of jobs that ended, misfits, usage of GPUs, archived jobs,
//! the feed, and what counts in reports.

use std::num::NonZero;
use std::ops::RangeFrom;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::thread;

use cohabit_journal::{FORMAT, decode_head, decode_part};
use cohabit_scheduler_core::{ArchivedPart, Effect, Head, MemoryMisfit, SnapshotPart};
use cohabit_types::{JobRecord, Notice, Time, UsageRecord};

use crate::HeadError;
use crate::history::{AccountingWrite, FeedWrite};
use crate::journal::{EncodedPart, Journal, JournalEntry, LoadedSnapshot, PartDecodeError, SqliteJournal};
use crate::replay_watch::{ReplayNote, ReplayNoteFile, ReplayWatch, SUSPECTED_AFTER};
use crate::sql::{corrupt, undecodable};

/// A thread decodes at least this many parts.
const MIN_PARTS_PER_THREAD: usize = 8;
/// More threads would wait for memory, not for a processor.
const MAX_THREADS: usize = 8;

/// A head in the state at the end of its journal.
pub(crate) struct RecoveredHead {
    /// The head.
    pub(crate) head: Head,
    /// The number of the last event.
    pub(crate) sequence: u64,
    /// The time of the last event.
    pub(crate) last: Time,
    /// Records of the jobs that ended after the snapshot, the earliest first.
    pub(crate) ended: Vec<JobRecord>,
    /// Ranks that found no memory left after the snapshot, the earliest first.
    pub(crate) misfits: Vec<MemoryMisfit>,
    /// What ranks that ended in the replayed events did with their GPUs.
    pub(crate) usage: Vec<UsageRecord>,
    /// Parts of submissions that were archived after the snapshot, the earliest first.
    pub(crate) archived: Vec<ArchivedPart>,
    /// What the events after the snapshot added to the feed.
    pub(crate) told: Vec<FeedWrite>,
    /// What the events after the snapshot added to reports.
    pub(crate) accounted: Vec<AccountingWrite>,
    /// How many events were replayed after the snapshot.
    pub(crate) replayed: u64,
}

/// Recovers the head that wrote this journal. If the journal is of an older format, its upgrade becomes
/// permanent, unless this version cannot continue from it: then the release before it can still open it.
///
/// # Errors
/// As [`recover`], and if the recovered state of an older journal breaks an invariant.
pub(crate) fn recover_and_upgrade(
    path: &Path,
    journal: &mut SqliteJournal,
) -> Result<RecoveredHead, HeadError> {
    if let Some(ReplayNote { event, starts }) = noted_event(path, journal)?
        && starts >= SUSPECTED_AFTER
    {
        let why = HeadError::fatal_at_starts(starts);
        return Err(HeadError::CannotReplay { path: path.to_owned(), event, why });
    }
    let recovered = recover_watched(path, journal)?;
    if journal.has_pending_upgrade() {
        let cannot_continue = |broken| HeadError::CannotContinue {
            path: path.to_owned(),
            what: format!("the state that it leads to is broken: {broken}"),
        };
        recovered.head.check().map_err(cannot_continue)?;
        tracing::info!(journal = %path.display(), "the journal is upgraded to format {FORMAT}");
        journal.accept_upgrade()?;
    }
    Ok(recovered)
}

/// The event with which the last starts ended, if the journal still has to replay it: a restored backup may
/// not.
///
/// # Errors
/// If the journal cannot be read.
pub(crate) fn noted_event(path: &Path, journal: &SqliteJournal) -> Result<Option<ReplayNote>, HeadError> {
    match ReplayNoteFile::beside(path).read() {
        Some(note) if journal.has_to_replay(note.event)? => Ok(Some(note)),
        Some(_) | None => Ok(None),
    }
}

/// As [`recover`]; an event that ends the process leaves a note.
pub(crate) fn recover_watched(path: &Path, journal: &impl Journal) -> Result<RecoveredHead, HeadError> {
    let watch = ReplayWatch::start(ReplayNoteFile::beside(path));
    let recovered = recover(path, journal, |event| watch.begin(event));
    watch.finish()?;
    recovered
}

/// Recovers the head that wrote this journal. `begins` hears of each event before it is replayed.
///
/// # Errors
/// If the journal cannot be read. The error names the event or the snapshot.
pub(crate) fn recover(
    path: &Path,
    journal: &impl Journal,
    begins: impl Fn(u64),
) -> Result<RecoveredHead, HeadError> {
    let loaded = journal.load()?;
    let (head, sequence, last) = match loaded.snapshot {
        Some(snapshot) => (decode_snapshot(path, &snapshot)?, snapshot.sequence, snapshot.at),
        None => (Head::new(), 0, Time::EPOCH),
    };
    let mut recovered = RecoveredHead {
        head,
        sequence,
        last,
        ended: vec![],
        misfits: vec![],
        usage: vec![],
        archived: vec![],
        told: vec![],
        accounted: vec![],
        replayed: 0,
    };
    for (sequence, entry) in loaded.tail {
        begins(sequence);
        recovered.replay(entry).map_err(|()| {
            let why = "makes this version panic".to_owned();
            HeadError::CannotReplay { path: path.to_owned(), event: sequence, why }
        })?;
    }
    Ok(recovered)
}

impl RecoveredHead {
    fn replay(&mut self, entry: JournalEntry) -> Result<(), ()> {
        let mut effects = Vec::new();
        let handle = || self.head.handle(entry.at, entry.event, &mut effects);
        catch_unwind(AssertUnwindSafe(handle)).map_err(drop)?;
        self.last = entry.at;
        self.sequence += 1;
        self.replayed += 1;
        let mut ordinals = 0..;
        effects.into_iter().for_each(|effect| self.keep(effect, &mut ordinals));
        Ok(())
    }

    /// Keeps what goes to the history.
    fn keep(&mut self, effect: Effect, ordinals: &mut RangeFrom<u32>) {
        match effect {
            Effect::Publish(_, Notice::Ended(record)) => self.ended.push(*record),
            Effect::RecordMisfit(misfit) => self.misfits.push(misfit),
            Effect::RecordUsage(usage) => self.usage.push(*usage),
            Effect::Archive(part) => self.archived.push(*part),
            Effect::Account(entry) => {
                let writes =
                    ordinals.next().map(|ordinal| AccountingWrite { place: (self.sequence, ordinal), entry });
                self.accounted.extend(writes);
            }
            Effect::AddToFeed(event) => {
                let writes =
                    ordinals.next().map(|ordinal| FeedWrite { sequence: self.sequence, ordinal, event });
                self.told.extend(writes);
            }
            Effect::Publish(_, Notice::Changed(_))
            | Effect::SendOrder(..)
            | Effect::Answer(..)
            | Effect::Plan(_)
            | Effect::Close(..) => {}
        }
    }
}

fn decode_snapshot(path: &Path, snapshot: &LoadedSnapshot) -> Result<Head, HeadError> {
    let unreadable = |number: usize, error: PartDecodeError| {
        let part = format!("part {number} of the snapshot after event {}", snapshot.sequence);
        match error {
            PartDecodeError::Content(error) => undecodable(path, &part, &error),
            PartDecodeError::TooShort | PartDecodeError::Compression(_) => {
                corrupt(path, format!("{part} cannot be read: {error}"))
            }
        }
    };
    let text = snapshot.rest.text().map_err(|error| unreadable(0, error))?;
    let decoded = decode_head(snapshot.format, &text).map_err(|error| unreadable(0, error.into()))?;
    let parts = decode_parts(snapshot.format, &snapshot.parts);
    let parts = parts.map_err(|(index, error)| unreadable(index + 1, error))?;
    let parts = decoded.jobs.into_iter().chain(parts).collect();
    Head::from_snapshot(decoded.head, parts).map_err(|error| {
        corrupt(path, format!("the snapshot after event {} cannot be read: {error}", snapshot.sequence))
    })
}

/// Decodes parts, on several threads if there are many. An error comes with the index of its part.
fn decode_parts(format: u32, parts: &[EncodedPart]) -> Result<Vec<SnapshotPart>, (usize, PartDecodeError)> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let share = parts.len().div_ceil(threads).max(MIN_PARTS_PER_THREAD);
    thread::scope(|scope| {
        let decode = |part: &EncodedPart| {
            let mut decoded = decode_part(format, &part.text()?)?;
            decoded.compact();
            Ok(decoded)
        };
        let read = move |(first, parts): (usize, &[EncodedPart])| {
            let indexed = (first..).zip(parts);
            indexed
                .map(|(index, part)| decode(part).map_err(|error| (index, error)))
                .collect::<Result<Vec<_>, _>>()
        };
        let mut shares = (0..).step_by(share).zip(parts.chunks(share));
        let own = shares.next().unwrap_or_default();
        let others: Vec<_> = shares.map(|share| scope.spawn(move || read(share))).collect();
        let mut all = read(own)?;
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok(all)
    })
}
