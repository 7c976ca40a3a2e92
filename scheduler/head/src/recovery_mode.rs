//! A head that cannot replay its journal: it tells every client and worker so until the event in question is
//! set aside, or the damaged log is repaired.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_net::{HeadIdentity, HelloRefusalCode, Incoming, Listener, TokenStore};
use tokio::time::{MissedTickBehavior, interval};

use crate::journal::log_of;
use crate::quarantine::is_quarantined;
use crate::replay_watch::ReplayNoteFile;
use crate::state_dir::StateDir;
use crate::{HeadError, HeadOptions};

/// How often it looks whether the event was set aside.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The port of a head that cannot start, and what it says there. It does not hold the state directory, so
/// that `cohabit head recover` can use it.
pub struct RecoveryMode {
    listener: Listener,
    message: String,
    journal: PathBuf,
    obstacle: Obstacle,
}

/// What an admin has to remove.
#[derive(Debug, Clone, Copy)]
enum Obstacle {
    /// An event that cannot be replayed.
    Event {
        number: u64,
        /// Whether a note of earlier starts is the reason, which an admin may remove.
        is_noted: bool,
    },
    /// A damaged write-ahead log, with the number of its file: a repair replaces the file.
    Log { inode: Option<u64> },
}

impl RecoveryMode {
    /// Listens where the head would, if `cohabit head recover` helps with this error; none if it does not.
    ///
    /// # Errors
    /// When it cannot listen, or the cluster's keys and tokens cannot be read.
    pub async fn start(options: &HeadOptions, error: &HeadError) -> Result<Option<RecoveryMode>, HeadError> {
        let Some(number) = unreplayable(error) else { return Ok(None) };
        let folder = options.state_dir.clone();
        let opened = blocking(move || {
            let state = StateDir::open(&folder)?;
            let identity = HeadIdentity::open_or_create(&state.identity())?;
            let tokens = TokenStore::open(&state.tokens(), identity.fingerprint())?;
            let journal = state.journal();
            let obstacle = match number {
                Some(number) => {
                    let is_noted = ReplayNoteFile::beside(&journal).read().is_some();
                    Obstacle::Event { number, is_noted }
                }
                None => Obstacle::Log { inode: inode(&log_of(&journal)) },
            };
            Ok::<_, HeadError>((identity, tokens, journal, obstacle))
        });
        let (identity, tokens, journal, obstacle) = opened.await?;
        let listener = Listener::bind(options.listen, &identity, tokens).await;
        let listener = listener.map_err(|error| HeadError::Listen(error.into()))?;
        let message = format!("it is in recovery mode: {error}");
        Ok(Some(RecoveryMode { listener, message, journal, obstacle }))
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Refuses everybody until the event is set aside or is to be tried again, or the log is repaired.
    pub async fn until_resolved(mut self) {
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                peer = self.listener.accept() => {
                    let message = self.message.clone();
                    let code = HelloRefusalCode::Recovering;
                    tokio::spawn(async move {
                        match peer {
                            Incoming::Client(client) => client.refuse(code, message).await,
                            Incoming::Worker(worker) => worker.refuse(code, message).await,
                        }
                    });
                }
                _ = look.tick() => if self.is_resolved().await { return },
            }
        }
    }

    async fn is_resolved(&self) -> bool {
        let (journal, obstacle) = (self.journal.clone(), self.obstacle);
        blocking(move || match obstacle {
            Obstacle::Event { number, is_noted } => {
                let is_note_gone = || ReplayNoteFile::beside(&journal).read().is_none();
                is_quarantined(&journal, number) || (is_noted && is_note_gone())
            }
            // SQLite must not open the journal before that.
            Obstacle::Log { inode: damaged } => inode(&log_of(&journal)) != damaged,
        })
        .await
    }
}

/// For an error that recovery mode is for: the event that it is about, or none where it is about the log.
fn unreplayable(error: &HeadError) -> Option<Option<u64>> {
    if let HeadError::CannotReplay { event, .. } = error {
        return Some(Some(*event));
    }
    matches!(error, HeadError::LogDamaged(_)).then_some(None)
}

fn inode(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|file| file.ino())
}
