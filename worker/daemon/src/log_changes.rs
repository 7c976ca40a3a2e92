//! Notices at once when a rank prints: the kernel tells this daemon of changes in the directories of logs
//! that are being followed.
//!
//! One watch of the kernel serves all followers of a log. Where there can be none, and on file systems that
//! tell nothing, followers look by themselves.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

/// The logs that are being followed; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogChanges(Arc<OnceLock<Option<Arc<Watches>>>>);

#[derive(Debug)]
struct Watches {
    kernel: Inotify,
    followed: Mutex<HashMap<WatchDescriptor, Follower>>,
}

/// Those who watch one directory.
#[derive(Debug)]
struct Follower {
    count: usize,
    changed: watch::Sender<()>,
}

/// One who follows a log, until it is dropped.
#[derive(Debug)]
pub(crate) struct LogFollower {
    /// Unless nothing has been printed yet.
    log: Option<WatchedDirectory>,
    rank: WatchedDirectory,
}

#[derive(Debug)]
struct WatchedDirectory {
    watches: Arc<Watches>,
    descriptor: WatchDescriptor,
    changed: watch::Receiver<()>,
}

impl LogChanges {
    /// Follows the log in this directory, which need not exist, and the creation of files in that of its
    /// rank, where the log and the outcome come. None where the kernel does not watch. Must be called on a
    /// thread of the runtime.
    pub(crate) fn follow(&self, log: &Path, rank: &Path) -> Option<LogFollower> {
        let watches = self.0.get_or_init(|| Watches::start().inspect_err(log_failure).ok()).as_ref()?;
        let created = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO;
        let rank = watches.watch(rank, created).ok()?;
        Some(LogFollower { log: watches.watch(log, created | AddWatchFlags::IN_MODIFY).ok(), rank })
    }
}

fn log_failure(error: &io::Error) {
    tracing::warn!(%error, "the kernel watches no logs: what ranks print is noticed a moment later");
}

impl Watches {
    fn start() -> io::Result<Arc<Watches>> {
        let kernel = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let watches = Arc::new(Watches { kernel, followed: Mutex::default() });
        // Like a pipe, it is read as events come.
        let events = Receiver::from_owned_fd_unchecked(watches.kernel.as_fd().try_clone_to_owned()?)?;
        let taker = Arc::clone(&watches);
        tokio::spawn(async move {
            while events.readable().await.is_ok() {
                match events.try_io(|| taker.take_events()) {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
                    Ok(()) | Err(_) => {}
                }
            }
        });
        Ok(watches)
    }

    fn watch(self: &Arc<Watches>, path: &Path, changes: AddWatchFlags) -> io::Result<WatchedDirectory> {
        let mut followed = self.followed();
        let descriptor = self.kernel.add_watch(path, changes | AddWatchFlags::IN_ONLYDIR)?;
        let follower = followed
            .entry(descriptor)
            .or_insert_with(|| Follower { count: 0, changed: watch::Sender::default() });
        follower.count += 1;
        let changed = follower.changed.subscribe();
        Ok(WatchedDirectory { watches: Arc::clone(self), descriptor, changed })
    }

    /// Fails with `WouldBlock` once there are no more.
    fn take_events(&self) -> io::Result<()> {
        let events = self.kernel.read_events()?;
        let mut followed = self.followed();
        for event in events {
            // The directory is gone, and the kernel may use its number again.
            let is_gone = event.mask.contains(AddWatchFlags::IN_IGNORED);
            let follower = if is_gone { followed.remove(&event.wd) } else { None };
            if let Some(follower) = follower.as_ref().or_else(|| followed.get(&event.wd)) {
                follower.changed.send_replace(());
            }
        }
        Ok(())
    }

    fn followed(&self) -> MutexGuard<'_, HashMap<WatchDescriptor, Follower>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogFollower {
    /// Returns when something has changed since the last call, or since this follower came.
    pub(crate) async fn changed(&mut self) {
        let LogFollower { log, rank } = self;
        match log {
            Some(log) => tokio::select! {
                () = log.changed() => {}
                () = rank.changed() => {}
            },
            None => rank.changed().await,
        }
    }
}

impl WatchedDirectory {
    async fn changed(&mut self) {
        if self.changed.changed().await.is_err() {
            // The directory is gone, and nothing more changes there.
            pending().await
        }
    }
}

impl Drop for WatchedDirectory {
    fn drop(&mut self) {
        let mut followed = self.watches.followed();
        let Some(follower) = followed.get_mut(&self.descriptor) else { return };
        follower.count = follower.count.saturating_sub(1);
        if follower.count == 0 {
            followed.remove(&self.descriptor);
            // Fails if the directory is gone.
            let _ = self.watches.kernel.rm_watch(self.descriptor);
        }
    }
}
