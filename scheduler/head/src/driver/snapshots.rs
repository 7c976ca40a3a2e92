//! Snapshots: what the head is now, kept so that the next start need not replay all that led to it.
//!
//! One is put into words on a thread of its own, from a copy that shares nearly everything with the head that
//! lives on, and written part by part: nobody waits for it. A crash before it is kept costs the next start
//! time, and nothing else. A head that is stopped waits for its last one: what it decided is not decided anew
//! by the next, which may be another version.

use cohabit_actor::{Address, AskError};
use cohabit_journal::{encode_head, encode_part};
use cohabit_scheduler_core::{Head, HeadSnapshot, SnapshotParts};
use cohabit_types::Time;
use futures::executor::block_on;
use futures::future::OptionFuture;
use tokio::task::{JoinHandle, spawn_blocking};

use super::state_check::StateCheck;
use crate::journal::{Commit, EncodedPart, JournalWrite, JournalWriteError};

/// Jobs in one part. As many may be submitted with one commit, which takes as long.
const JOBS_PER_PART: usize = 512;

/// When the next snapshot is due, and which one is being made.
pub(crate) struct Snapshots {
    /// At the earliest after so many events.
    every: u64,
    /// How many events there are since the last one.
    since: u64,
    /// The number of the last event that the head has handled.
    sequence: u64,
    /// When that came.
    last: Time,
    under_way: Option<JoinHandle<()>>,
}

impl Snapshots {
    /// Goes on behind the event of this number and time, so many after the last snapshot.
    pub(crate) fn after(sequence: u64, last: Time, since: u64, every: u64) -> Snapshots {
        Snapshots { every, since, sequence, last, under_way: None }
    }

    /// The head has handled so many events more, the last of which came at this time.
    pub(super) fn count(&mut self, events: u64, last: Time) {
        self.since += events;
        self.sequence += events;
        self.last = last;
    }

    /// Begins a snapshot of the head as it was after its last event, if one is due.
    pub(super) fn take(&mut self, head: &Head, check: &mut StateCheck, journal: &Address<Commit>) {
        // It costs what there is: a head with many jobs waits for as much to happen.
        let due = self.every.max(head.job_count() as u64 / 2);
        if self.since < due || self.under_way.as_ref().is_some_and(|it| !it.is_finished()) {
            return;
        }
        if check.passes(head) {
            self.begin(head, journal);
        }
    }

    /// The last one, when nothing happens any more.
    pub(super) async fn take_last(&mut self, head: &Head, check: &mut StateCheck, journal: &Address<Commit>) {
        self.settle().await;
        if self.since > 0 && check.passes(head) {
            self.begin(head, journal);
            self.settle().await;
        }
    }

    async fn settle(&mut self) {
        if let Some(Err(error)) = OptionFuture::from(self.under_way.take()).await {
            tracing::error!(%error, "a snapshot was not finished");
        }
    }

    fn begin(&mut self, head: &Head, journal: &Address<Commit>) {
        self.since = 0;
        let (rest, parts) = head.split_for_snapshot(JOBS_PER_PART);
        let (sequence, at, journal) = (self.sequence, self.last, journal.clone());
        self.under_way = Some(spawn_blocking(move || match keep(rest, parts, sequence, at, &journal) {
            // A journal that is closing needs none; where it cannot be written now, the next is as good.
            Ok(()) | Err(SnapshotError::Closed(_) | SnapshotError::JournalWriteError(_)) => {}
            Err(SnapshotError::Json(error)) => {
                tracing::error!(%error, "the head cannot be put into words: there is no snapshot");
            }
        }));
    }
}

/// Why a snapshot was not kept.
#[derive(Debug, thiserror::Error)]
enum SnapshotError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    JournalWriteError(#[from] JournalWriteError),
    #[error(transparent)]
    Closed(#[from] AskError),
}

/// Writes a snapshot part by part, each once the one before it is durable.
fn keep(
    rest: HeadSnapshot,
    parts: SnapshotParts,
    sequence: u64,
    at: Time,
    journal: &Address<Commit>,
) -> Result<(), SnapshotError> {
    let write = |write: JournalWrite| -> Result<(), SnapshotError> {
        Ok(block_on(journal.ask(|durable| Commit { writes: vec![write], durable: Some(durable) }))??)
    };
    let mut number = 0;
    for text in std::iter::once(encode_head(&rest)).chain(parts.map(|part| encode_part(&part))) {
        write(JournalWrite::Part { snapshot: sequence, number, content: EncodedPart::of(&text?) })?;
        number += 1;
    }
    write(JournalWrite::Snapshot { sequence, at, parts: number })
}
