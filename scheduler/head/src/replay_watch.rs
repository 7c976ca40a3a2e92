//! Notes on disk which event a replay is busy with, where that takes long.
//!
//! An event may end the process that replays it, by the memory that it takes for example, and no process can
//! report that of itself. The next start finds the note. A start that was only interrupted leaves one too, so
//! an event counts as the cause when two starts in a row have ended with it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::HeadError;

/// An event that is replayed for longer than this is noted.
const LONG: Duration = Duration::from_secs(1);

/// Starts that ended with the same event before it counts as the cause.
pub(crate) const SUSPECTED_AFTER: u32 = 2;

/// The event with which the last start ended, if one did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReplayNote {
    /// The number of the event.
    pub(crate) event: u64,
    /// How many starts in a row ended with it.
    pub(crate) starts: u32,
}

/// The file of the note, beside the journal.
#[derive(Debug, Clone)]
pub(crate) struct ReplayNoteFile(PathBuf);

/// Watches a replay until it is dropped. Dropped after [`ReplayWatch::finish`], it leaves no note.
pub(crate) struct ReplayWatch {
    file: ReplayNoteFile,
    /// The event that is being replayed; 0 at the end.
    current: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl ReplayNoteFile {
    /// The note on the replay of this journal.
    pub(crate) fn beside(journal: &Path) -> ReplayNoteFile {
        ReplayNoteFile(journal.with_file_name("replaying.json"))
    }

    /// The note of an earlier start. What cannot be understood is no note: it must not keep a head from
    /// starting.
    pub(crate) fn read(&self) -> Option<ReplayNote> {
        serde_json::from_slice(&std::fs::read(&self.0).ok()?).ok()
    }

    /// Forgets the note.
    pub(crate) fn remove(&self) -> Result<(), HeadError> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(HeadError::state(&self.0)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn write(&self, note: ReplayNote) {
        let text = serde_json::to_vec(&note).unwrap_or_default();
        if let Err(error) = std::fs::write(&self.0, text) {
            tracing::warn!(%error, file = %self.0.display(), "cannot note the event that is being replayed");
        }
    }
}

impl ReplayWatch {
    /// Begins to watch.
    pub(crate) fn start(file: ReplayNoteFile) -> ReplayWatch {
        ReplayWatch::noting_after(LONG, file)
    }

    fn noting_after(long: Duration, file: ReplayNoteFile) -> ReplayWatch {
        let current = Arc::new(AtomicU64::new(0));
        let (watched, noted) = (Arc::downgrade(&current), file.clone());
        let thread = thread::spawn(move || {
            let (mut last, mut last_noted) = (0, 0);
            while let Some(current) = watched.upgrade() {
                let event = current.load(Ordering::Relaxed);
                drop(current);
                // Once, however long it takes: a start counts once.
                if event > 0 && event == last && event != last_noted {
                    note(&noted, event);
                    last_noted = event;
                }
                last = event;
                thread::park_timeout(long);
            }
        });
        ReplayWatch { file, current, thread: Some(thread) }
    }

    /// The replay of this event begins.
    pub(crate) fn begin(&self, event: u64) {
        self.current.store(event, Ordering::Relaxed);
    }

    /// The replay has ended, whatever came of it: no note remains.
    pub(crate) fn finish(self) -> Result<(), HeadError> {
        let file = self.file.clone();
        drop(self);
        file.remove()
    }
}

impl Drop for ReplayWatch {
    fn drop(&mut self) {
        self.current = Arc::default();
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It only watches, so its end says nothing.
            let _ = thread.join();
        }
    }
}

fn note(file: &ReplayNoteFile, event: u64) {
    let before = file.read().filter(|note| note.event == event).map_or(0, |note| note.starts);
    tracing::warn!(event, "the replay of this event takes long");
    file.write(ReplayNote { event, starts: before + 1 });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A start that replays this event until it is noted, and then dies or gets on.
    fn start(file: &ReplayNoteFile, event: u64) -> ReplayWatch {
        let before = file.read();
        let watch = ReplayWatch::noting_after(Duration::from_millis(1), file.clone());
        watch.begin(event - 1);
        watch.begin(event);
        while file.read() == before {
            thread::yield_now();
        }
        // Long enough for more notes of the same event, if there were any.
        thread::sleep(Duration::from_millis(30));
        watch
    }

    #[test]
    fn starts_that_end_with_the_same_event_are_counted_until_one_gets_past_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = ReplayNoteFile::beside(&folder.path().join("journal.sqlite"));
        assert_eq!(file.read(), None);
        drop(start(&file, 7));
        assert_eq!(file.read(), Some(ReplayNote { event: 7, starts: 1 }));
        drop(start(&file, 7));
        assert_eq!(file.read(), Some(ReplayNote { event: 7, starts: 2 }));
        drop(start(&file, 9));
        assert_eq!(file.read(), Some(ReplayNote { event: 9, starts: 1 }));
        start(&file, 9).finish().unwrap();
        assert_eq!(file.read(), None);
    }
}
