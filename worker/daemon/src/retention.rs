//! Removes the output of ranks that ended long ago, and checkpoints of jobs without ranks on this host: when
//! the daemon starts, and then every hour.
//!
//! Only directories with our names are touched. Symbolic links are removed, never followed.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cohabit_actor::{Actor, ActorFailure, Context, blocking};
use cohabit_host::files::remove_directory;
use cohabit_host::rank_directory::{RankDirectory, directories_in, ranks_in};
use cohabit_types::{JobId, Span};

use crate::state_directory::StateDirectory;

const CLEAN_INTERVAL: Duration = Duration::from_secs(3600);

/// The message to clean up now.
pub(crate) struct Clean;

/// The actor that cleans up.
pub(crate) struct Cleaner {
    state: StateDirectory,
    retention: Duration,
}

impl Cleaner {
    pub(crate) fn new(state: StateDirectory, retention: Span) -> Cleaner {
        Cleaner { state, retention: retention.into() }
    }
}

impl Actor for Cleaner {
    type Message = Clean;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        context.send_every(CLEAN_INTERVAL, || Clean);
        self.handle(Clean, context).await
    }

    async fn handle(&mut self, _: Clean, _: &mut Context<Self>) -> Result<(), ActorFailure> {
        let (state, retention) = (self.state.clone(), self.retention);
        blocking(move || clean(&state, retention)).await;
        Ok(())
    }
}

fn clean(state: &StateDirectory, retention: Duration) {
    // A retention that is longer than the clock goes back keeps everything.
    let Some(before) = SystemTime::now().checked_sub(retention) else { return };
    for id in ranks_in(&state.ranks()) {
        let folder = RankDirectory::for_rank(&state.ranks(), id);
        let acknowledged_at = fs::metadata(folder.acknowledged_file()).and_then(|file| file.modified());
        if acknowledged_at.is_ok_and(|at| at < before) {
            remove(folder.path());
        }
    }
    for job in directories_in::<JobId>(&state.ranks()) {
        prune(&state.ranks().join(job.to_string()));
    }
    for job in directories_in::<JobId>(&state.checkpoints()) {
        let folder = state.checkpoints_of(job);
        if !state.ranks().join(job.to_string()).exists() && newest_in(&folder).is_some_and(|at| at < before) {
            remove(&folder);
        }
    }
}

/// Removes the directories of attempts, and then of the job, if they are empty.
fn prune(job: &Path) {
    for attempt in directories_in::<u32>(job) {
        // Fails if it is not empty, as intended.
        let _ = fs::remove_dir(job.join(attempt.to_string()));
    }
    let _ = fs::remove_dir(job);
}

fn remove(folder: &Path) {
    match remove_directory(folder) {
        Ok(()) => tracing::debug!(folder = %folder.display(), "removed: its retention has ended"),
        Err(error) => tracing::warn!(folder = %folder.display(), %error, "could not be removed"),
    }
}

/// When anything in the directory was last changed: by the clock of the kernel, because a job may give its
/// files any time of modification.
fn newest_in(folder: &Path) -> Option<SystemTime> {
    let own = fs::symlink_metadata(folder).ok().and_then(|file| changed_at(&file));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let inner = entries.filter_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => newest_in(&entry.path()),
        Ok(_) | Err(_) => entry.metadata().ok().and_then(|file| changed_at(&file)),
    });
    inner.chain(own).max()
}

fn changed_at(file: &Metadata) -> Option<SystemTime> {
    let since_epoch = Duration::new(file.ctime().try_into().ok()?, file.ctime_nsec().try_into().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since_epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kit {
        _folder: tempfile::TempDir,
        state: StateDirectory,
    }

    impl Kit {
        fn new() -> Kit {
            let folder = tempfile::tempdir().unwrap();
            let (state, _) = StateDirectory::open(&folder.path().join("state")).unwrap();
            Kit { _folder: folder, state }
        }

        fn rank(&self, job: u64, file: &str) -> RankDirectory {
            let folder = RankDirectory::for_rank(&self.state.ranks(), JobId::new(job).attempt(1).rank(0));
            fs::create_dir_all(folder.log()).unwrap();
            fs::write(folder.path().join(file), "{}").unwrap();
            folder
        }

        fn checkpoint(&self, job: u64) -> std::path::PathBuf {
            let folder = self.state.checkpoints_of(JobId::new(job));
            fs::create_dir_all(folder.join("deep")).unwrap();
            fs::write(folder.join("deep/weights"), "1").unwrap();
            folder
        }
    }

    #[test]
    fn only_what_was_acknowledged_long_ago_is_removed() {
        let kit = Kit::new();
        let gone = kit.rank(1, "acknowledged.json");
        let unknown = kit.rank(2, "outcome.json");
        let running = kit.rank(3, "start.json");
        let (old, kept) = (kit.checkpoint(1), kit.checkpoint(3));
        clean(&kit.state, Duration::from_secs(3600));
        assert!(gone.path().exists() && old.exists());
        clean(&kit.state, Duration::ZERO);
        assert!(!gone.path().exists() && !old.exists());
        assert!(!kit.state.ranks().join("1").exists());
        assert!(unknown.path().exists() && running.path().exists() && kept.exists());
    }

    #[test]
    fn a_file_with_a_time_in_the_future_keeps_no_directory() {
        let kit = Kit::new();
        let old = kit.checkpoint(1);
        let far = SystemTime::now() + Duration::from_secs(1_000_000);
        fs::File::open(old.join("deep/weights")).unwrap().set_modified(far).unwrap();
        clean(&kit.state, Duration::ZERO);
        assert!(!old.exists());
    }

    #[test]
    fn links_are_removed_and_never_followed() {
        let kit = Kit::new();
        let precious = kit._folder.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("thesis"), "1").unwrap();
        let gone = kit.rank(1, "acknowledged.json");
        std::os::unix::fs::symlink(&precious, gone.path().join("workdir")).unwrap();
        std::os::unix::fs::symlink(&precious, kit.state.checkpoints_of(JobId::new(9))).unwrap();
        clean(&kit.state, Duration::ZERO);
        assert!(!gone.path().exists());
        assert!(precious.join("thesis").exists());
    }
}
