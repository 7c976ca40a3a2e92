//! Gives away checkpoints: archives of what this worker keeps, read piece by piece.
//!
//! An archive is made when its first piece is asked for, and dropped with its last piece, or when nobody has
//! read on for a while.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cohabit_actor::blocking;
use cohabit_host::files::remove_directory;
use cohabit_types::{CHECKPOINT_PIECE_BYTES, CheckpointPiece, CheckpointQuery, JobId, Refusal, RefusalCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use super::entry::CheckpointEntry;
use super::tar::{self, CheckpointArchive};
use crate::state_directory::StateDirectory;

/// Archives at once; whoever wants another one waits.
const MOST_ARCHIVES: usize = 16;

/// An archive that nobody has read for so long is dropped.
const UNREAD_LIMIT: Duration = Duration::from_secs(180);

/// The names of what is on its way here.
pub(super) const CARRIED: &str = ".carried-";

/// The archives that are being read.
#[derive(Clone)]
pub(crate) struct CheckpointArchives {
    state: StateDirectory,
    open: Arc<Mutex<OpenArchives>>,
    permits: Arc<Semaphore>,
}

type OpenArchives = BTreeMap<(JobId, u32), OpenArchive>;

#[derive(Clone)]
struct OpenArchive {
    file: Arc<File>,
    size: u64,
    lacks_earlier: bool,
    read_at: Instant,
    _permit: Arc<OwnedSemaphorePermit>,
}

impl CheckpointArchives {
    /// Removes what earlier daemons had on its way. Blocks.
    pub(crate) fn open(state: &StateDirectory) -> CheckpointArchives {
        for entry in fs::read_dir(state.checkpoints()).into_iter().flatten().flatten() {
            let is_left = entry.file_name().to_str().is_some_and(|name| name.starts_with(CARRIED));
            if is_left && let Err(error) = remove_directory(&entry.path()) {
                tracing::warn!(folder = %entry.path().display(), %error, "could not be removed");
            }
        }
        let permits = Arc::new(Semaphore::new(MOST_ARCHIVES));
        CheckpointArchives { state: state.clone(), open: Arc::default(), permits }
    }

    /// A piece of the checkpoints of a job.
    ///
    /// # Errors
    /// When there is no archive, in words for the user of the job.
    pub(crate) async fn read(&self, query: CheckpointQuery) -> Result<CheckpointPiece, Refusal> {
        let key = (query.job, query.node_rank);
        let archive =
            match query.offset {
                0 => self.make(query).await?,
                _ => self.archives().get(&key).cloned().map(Some).ok_or_else(|| {
                    unavailable("the archive of them was dropped while it was read".to_owned())
                })?,
            };
        let Some(archive) = archive else {
            return Ok(CheckpointPiece { size: 0, offset: 0, lacks_earlier: false, bytes: Vec::new() });
        };
        let OpenArchive { file, size, lacks_earlier, .. } = archive;
        let offset = query.offset.min(size);
        let bytes = blocking(move || read_at(&file, offset, size)).await;
        let bytes =
            bytes.map_err(|error| unavailable(format!("the archive of them cannot be read: {error}")))?;
        if offset + bytes.len() as u64 == size {
            self.archives().remove(&key);
        } else if let Some(open) = self.archives().get_mut(&key) {
            open.read_at = Instant::now();
        }
        Ok(CheckpointPiece { size, offset, lacks_earlier, bytes })
    }

    /// A new archive, in place of one that was not read to its end; none if there is nothing to give away.
    async fn make(&self, query: CheckpointQuery) -> Result<Option<OpenArchive>, Refusal> {
        let key = (query.job, query.node_rank);
        self.archives().remove(&key);
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| unavailable("the worker is stopping".to_owned()))?;
        let checkpoints = self.state.checkpoints();
        let entry = CheckpointEntry::latest(query.job, query.node_rank);
        let packed = tar::pack(&entry.path(&checkpoints), &checkpoints, query.limit).await;
        let packed = packed.map_err(|error| unavailable(error.to_string()))?;
        let Some(CheckpointArchive { file, size }) = packed else { return Ok(None) };
        let marker = entry.incomplete().path(&checkpoints);
        let lacks_earlier = blocking(move || marker.exists()).await;
        let read_at = Instant::now();
        let archive =
            OpenArchive { file: Arc::new(file), size, lacks_earlier, read_at, _permit: Arc::new(permit) };
        self.archives().insert(key, archive.clone());
        tokio::spawn(self.clone().drop_unread(key));
        Ok(Some(archive))
    }

    async fn drop_unread(self, key: (JobId, u32)) {
        loop {
            let left = match self.archives().get(&key) {
                Some(archive) => UNREAD_LIMIT.saturating_sub(archive.read_at.elapsed()),
                None => return,
            };
            if left.is_zero() {
                self.archives().remove(&key);
                return;
            }
            sleep(left).await;
        }
    }

    fn archives(&self) -> std::sync::MutexGuard<'_, OpenArchives> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_at(file: &File, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    let length = (size - offset).min(CHECKPOINT_PIECE_BYTES as u64) as usize;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn unavailable(why: String) -> Refusal {
    Refusal::new(RefusalCode::Unavailable, why)
}
