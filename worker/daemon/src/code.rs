//! Copies of the code of jobs that run in a snapshot of it.
//!
//! ```text
//! head ── pieces ──▶ stored-code/ (by hash) ── write_tree ──▶ code/<job>/<attempt>/files/ ──▶ ranks start
//!                                                  the attempt ends: what it did not change is removed
//! ```
//!
//! All ranks of an attempt on this host share one copy, which belongs to their user; so do all parts of an
//! application, for which it is that of their program. What they wrote into it stays as long as checkpoints
//! do.

mod directory;
mod fetch;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cohabit_actor::blocking;
use cohabit_host::rank_directory::attempts_in;
use cohabit_net::WorkerReports;
use cohabit_store::{ContentStore, StoreKind, StoreLimits};
use cohabit_types::{AttemptId, Bytes, CodeSnapshot, ContentHash, Entrypoint, JobSpec, StartFailure};
use cohabit_worker_core::RankStart;
use nix::sys::statvfs::statvfs;

pub(crate) use self::directory::{CodeDirectory, CodeDirectoryError};
use self::fetch::{FetchError, Fetcher};
pub(crate) use self::steps::CopySteps;
use crate::error::WorkerError;
use crate::isolation::Isolator;
use crate::state_directory::StateDirectory;

/// What is kept of snapshots that nobody uses now, if the file system is ten times as large.
const STORED_BYTES: Bytes = Bytes(10 << 30);

/// How many files of them.
const STORED_FILES: usize = 500_000;

/// The code of jobs on this host.
#[derive(Debug)]
pub(crate) struct CodeCopies {
    state: StateDirectory,
    stored: Arc<ContentStore>,
    /// What copies that are being made need.
    needed: Arc<Mutex<Vec<Arc<BTreeSet<ContentHash>>>>>,
}

/// Whether somebody still waits for a copy.
#[derive(Debug, Default, Clone)]
pub(crate) struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A copy to make.
#[derive(Debug)]
pub(crate) struct CopyOrder {
    /// A rank of the attempt, whose job runs in a snapshot.
    pub(crate) start: RankStart,
    /// Tells whose the copy is to be.
    pub(crate) isolation: Isolator,
    pub(crate) abandoned: Abandoned,
}

impl CodeCopies {
    /// Opens the stored files. Blocks.
    ///
    /// # Errors
    /// When their directory cannot be used.
    pub(crate) fn open(state: &StateDirectory) -> Result<CodeCopies, WorkerError> {
        let size =
            statvfs(state.root()).map_or(u64::MAX, |it| it.blocks().saturating_mul(it.fragment_size()));
        let limits = StoreLimits { bytes: STORED_BYTES.min(Bytes(size / 10)), files: STORED_FILES };
        let stored = ContentStore::open(&state.stored_code(), StoreKind::Cache, limits)?;
        Ok(CodeCopies { state: state.clone(), stored: stored.into(), needed: Arc::default() })
    }

    /// Fetches what is missing of a snapshot and makes the copy.
    ///
    /// # Errors
    /// Why there is none; what was fetched stays for the next try.
    pub(crate) async fn make(&self, head: WorkerReports, order: CopyOrder) -> Result<(), StartFailure> {
        let CopyOrder { start, isolation, abandoned } = order;
        let (owner, spec, job) = (start.code_owner(), Arc::clone(&start.spec), start.rank.attempt.job);
        let Some(code) = spec.code.as_ref() else { return Ok(()) };
        // May ask a server for the account.
        let account = blocking(move || isolation.account(&start)).await;
        let account = account.map_err(|error| error.failure())?;
        let user = account.map(|choice| (choice.account.uid, choice.account.gid));
        let workdir = workdir(&spec, code).to_owned();
        let fetcher = Fetcher { head, stored: Arc::clone(&self.stored), job, abandoned };
        let manifest = fetcher.manifest(code).await.map_err(failure)?;
        let sizes: BTreeMap<ContentHash, u64> = manifest.stored().collect();
        let _needed = self.keep(sizes.keys().copied().chain([code.manifest]).collect());
        let absent = fetcher.absent(sizes.keys().copied().collect()).await.map_err(failure)?;
        let bytes = absent.iter().filter_map(|hash| sizes.get(hash)).copied().fold(0, u64::saturating_add);
        self.make_room(Bytes(bytes), absent.len()).await;
        fetcher.fetch_all(absent).await.map_err(failure)?;
        let (directory, stored) = (self.state.code_of(owner), Arc::clone(&self.stored));
        let state = self.state.clone();
        let written = blocking(move || {
            state.create_code_directory(&directory)?;
            directory.write(&manifest, &stored, &workdir, user)?;
            match spec.entrypoint.role() {
                Some(_) => directory.create_sockets(user),
                None => Ok(()),
            }
        });
        written.await.map_err(|error| failure(FetchError::from(error)))
    }

    /// Keeps these files while the guard exists.
    fn keep(&self, files: BTreeSet<ContentHash>) -> NeededFiles {
        let files = Arc::new(files);
        self.needed.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&files));
        NeededFiles { needed: Arc::clone(&self.needed), files }
    }

    /// Gives up files that no copy needs which is being made.
    async fn make_room(&self, bytes: Bytes, files: usize) {
        let needed = self.needed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let stored = Arc::clone(&self.stored);
        blocking(move || {
            let kept = needed.iter().flat_map(|files| files.iter().copied()).collect();
            // Without room the fetch says what is wrong.
            let _ = stored.make_room(bytes, files, &kept);
        })
        .await;
    }

    /// Removes what nobody has changed of the copy of an attempt.
    pub(crate) async fn release(&self, attempt: AttemptId) {
        let state = self.state.clone();
        blocking(move || {
            let directory = state.code_of(attempt);
            match directory.remove_unchanged() {
                Ok(()) => state.remove_empty_code(attempt),
                Err(error) => {
                    let path = directory.path().display();
                    tracing::warn!(directory = %path, %error, "the copy of the code of an attempt stays");
                }
            }
        })
        .await;
    }

    /// Releases the copies that earlier daemons left, but not those of these attempts.
    pub(crate) async fn release_all_but(&self, live: BTreeSet<AttemptId>) {
        let state = self.state.clone();
        let left = blocking(move || attempts_in(&state.code())).await;
        for attempt in left.into_iter().filter(|attempt| !live.contains(attempt)) {
            self.release(attempt).await;
        }
    }

    /// The copy that this rank starts in, if its job runs in one.
    pub(crate) fn copy_of(&self, rank: &RankStart) -> Option<CodeCopy> {
        let code = rank.spec.code.as_ref().filter(|_| rank.spec.entrypoint.role().is_none())?;
        let folder = self.state.code_of(rank.code_owner()).files();
        Some(CodeCopy { workdir: folder.join(workdir(&rank.spec, code)), folder })
    }

    /// The program that this rank runs, if it is a part of an application.
    pub(crate) fn program_of(&self, rank: &RankStart) -> Option<PathBuf> {
        let program = match &rank.spec.entrypoint {
            Entrypoint::Command(_) => return None,
            Entrypoint::Application(work) => &work.program,
            Entrypoint::Runner(work) => &work.program,
        };
        Some(self.state.code_of(rank.code_owner()).files().join(program))
    }
}

/// The paths of a copy.
pub(crate) struct CodeCopy {
    /// The copy.
    pub(crate) folder: PathBuf,
    /// The working directory in it.
    pub(crate) workdir: PathBuf,
}

/// Where a job starts, below the folder of its snapshot. A part of an application does not start in it.
fn workdir<'a>(spec: &'a JobSpec, code: &CodeSnapshot) -> &'a Path {
    if spec.entrypoint.role().is_some() {
        return Path::new("");
    }
    code.relative(&spec.workdir).unwrap_or(Path::new(""))
}

/// Files that are needed while this exists.
struct NeededFiles {
    needed: Arc<Mutex<Vec<Arc<BTreeSet<ContentHash>>>>>,
    files: Arc<BTreeSet<ContentHash>>,
}

impl Drop for NeededFiles {
    fn drop(&mut self) {
        let mut needed = self.needed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = needed.iter().position(|files| Arc::ptr_eq(files, &self.files)) {
            needed.swap_remove(own);
        }
    }
}

/// Why a rank does not start whose code cannot be had. Where the job is not at fault, it is queued again.
fn failure(error: FetchError) -> StartFailure {
    match error {
        FetchError::Refused(_) => StartFailure::Other(format!("its code snapshot cannot be used: {error}")),
        FetchError::Store(_) | FetchError::Copy(_) if !error.is_of_machine() => {
            StartFailure::Other(format!("its code snapshot cannot be used: {error}"))
        }
        FetchError::Link(_) | FetchError::Abandoned | FetchError::Store(_) | FetchError::Copy(_) => {
            StartFailure::NodeProblem(format!("its code snapshot could not be fetched: {error}"))
        }
    }
}
