//! Snapshots of the head, which save the next start from replaying all earlier events.
//!
//! A snapshot is encoded on blocking threads, from a copy that shares most data with the head in use, and
//! written part by part while the driver goes on. A crash before it is complete only makes the next start
//! slower. A head that is stopped waits for a last snapshot, so that the next head, which may be another
//! version, repeats no decision.

use cohabit_actor::{Address, AskError, blocking};
use cohabit_journal::{encode_head, encode_part};
use cohabit_scheduler_core::{Head, HeadSnapshot, SnapshotParts};
use cohabit_types::Time;
use futures::future::OptionFuture;
use tokio::task::JoinHandle;

use super::state_check::StateCheck;
use crate::journal::{Commit, EncodedPart, JournalWrite, JournalWriteError};

/// Jobs in one part. A commit of one part then takes about as long as a commit of as many submissions.
const JOBS_PER_PART: usize = 512;

/// When the next snapshot is due, and the one in progress.
pub(crate) struct Snapshots {
    /// The least number of events between two snapshots.
    every: u64,
    /// The number of events since the last snapshot.
    since: u64,
    /// The number of the last event that the head has applied.
    sequence: u64,
    /// The time of that event.
    last: Time,
    in_progress: Option<JoinHandle<()>>,
}

impl Snapshots {
    /// Continues after the event with this number and time, `since` events after the last snapshot.
    pub(crate) fn after(sequence: u64, last: Time, since: u64, every: u64) -> Snapshots {
        Snapshots { every, since, sequence, last, in_progress: None }
    }

    /// The number of the last event that the head has applied.
    pub(super) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The head has applied this many more events, the last one at this time.
    pub(super) fn count(&mut self, events: u64, last: Time) {
        self.since += events;
        self.sequence += events;
        self.last = last;
    }

    /// Whether to take a snapshot now. The cost grows with the number of jobs, so a head with many jobs takes
    /// snapshots less often.
    pub(super) fn is_due(&self, head: &Head) -> bool {
        let due = self.every.max(head.job_count() as u64 / 2);
        self.since >= due && self.in_progress.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Begins a snapshot of the head, which has applied its last event.
    pub(super) fn take(&mut self, head: &Head, check: &mut StateCheck, journal: &Address<Commit>) {
        if check.passes(head) {
            self.begin(head, journal);
        }
    }

    /// Takes a last snapshot, after the last event, and waits for it.
    pub(super) async fn take_last(&mut self, head: &Head, check: &mut StateCheck, journal: &Address<Commit>) {
        self.settle().await;
        if self.since > 0 && check.passes(head) {
            self.begin(head, journal);
            self.settle().await;
        }
    }

    async fn settle(&mut self) {
        if let Some(Err(error)) = OptionFuture::from(self.in_progress.take()).await {
            tracing::error!(%error, "a snapshot failed");
        }
    }

    fn begin(&mut self, head: &Head, journal: &Address<Commit>) {
        self.since = 0;
        let (rest, parts) = head.split_for_snapshot(JOBS_PER_PART);
        let (sequence, at, journal) = (self.sequence, self.last, journal.clone());
        self.in_progress = Some(tokio::spawn(async move {
            match write_parts(rest, parts, sequence, at, &journal).await {
                // A closing journal needs no snapshot; if the journal cannot be written now, the next one
                // will do.
                Ok(()) | Err(SnapshotError::Closed(_) | SnapshotError::JournalWriteError(_)) => {}
                Err(SnapshotError::Json(error)) => {
                    tracing::error!(%error, "the head cannot be encoded: there is no snapshot");
                }
            }
        }));
    }
}

/// Why a snapshot was not written.
#[derive(Debug, thiserror::Error)]
enum SnapshotError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    JournalWriteError(#[from] JournalWriteError),
    #[error(transparent)]
    Closed(#[from] AskError),
}

/// Writes a snapshot part by part, each once the previous one is durable.
async fn write_parts(
    rest: HeadSnapshot,
    mut parts: SnapshotParts,
    sequence: u64,
    at: Time,
    journal: &Address<Commit>,
) -> Result<(), SnapshotError> {
    let mut number = 0;
    let mut encoded = Some(blocking(move || encode_head(&rest).map(|text| EncodedPart::of(&text))).await);
    while let Some(content) = encoded {
        write(journal, JournalWrite::Part { snapshot: sequence, number, content: content? }).await?;
        number += 1;
        let next = move || {
            let encode = |part| encode_part(&part).map(|text| EncodedPart::of(&text));
            (parts.next().map(encode), parts)
        };
        (encoded, parts) = blocking(next).await;
    }
    write(journal, JournalWrite::Snapshot { sequence, at, parts: number }).await
}

async fn write(journal: &Address<Commit>, write: JournalWrite) -> Result<(), SnapshotError> {
    let (history, writes) = (Vec::new(), vec![write]);
    Ok(journal.ask(|durable| Commit { history, writes, durable: Some(durable) }).await??)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::journal::JournalWriter;
    use crate::test_kit::{TestJournal, at, one_job, replayed};

    /// A head whose submission counts no jobs.
    fn broken() -> Head {
        let (rest, parts) = replayed(one_job()).split_for_snapshot(JOBS_PER_PART);
        let mut parts: Vec<_> = parts.collect();
        Arc::make_mut(&mut parts[0].submissions[0].1).state_counts.clear();
        Head::from_snapshot(rest, parts).unwrap()
    }

    /// How many snapshots there are after a regular one and a last one were due.
    async fn snapshots_of(head: &Head, check: &mut StateCheck) -> Option<String> {
        let journal = TestJournal::new();
        let writer = JournalWriter::start(journal.open()).unwrap();
        let mut snapshots = Snapshots::after(7, at(7), 1, 1);
        snapshots.take(head, check, &writer.address);
        snapshots.count(1, at(8));
        snapshots.take_last(head, check, &writer.address).await;
        journal.ask("SELECT count(*) FROM snapshots").remove(0)
    }

    #[tokio::test]
    async fn a_broken_state_gets_no_snapshot() {
        let mut check = StateCheck::default();
        assert_eq!(snapshots_of(&replayed(one_job()), &mut check).await.as_deref(), Some("2"));
        assert!(!check.is_broken());
        assert_eq!(snapshots_of(&broken(), &mut check).await.as_deref(), Some("0"));
        assert!(check.refusal().unwrap().message.contains("submission 1"));
    }

    #[test]
    fn a_panic_is_caught_only_where_the_state_is_broken() {
        let mut check = StateCheck::default();
        assert_eq!(check.guard(|| 1), Some(1));
        check.passes(&broken());
        assert_eq!(check.guard(|| 1), Some(1));
        assert_eq!(check.guard(|| panic!("an index is missing")), None::<()>);
    }
}
