//! A head that cannot replay its journal: it tells every client and worker so until the event in question is
//! set aside.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use cohabit_actor::blocking;
use cohabit_net::{HeadIdentity, HelloRefusalCode, Incoming, Listener, TokenStore};
use tokio::time::{MissedTickBehavior, interval};

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
    event: u64,
    /// Whether a note of earlier starts is the reason, which an admin may remove.
    is_noted: bool,
}

impl RecoveryMode {
    /// Listens where the head would, if this error is about one event; none if it is about something else.
    ///
    /// # Errors
    /// When it cannot listen, or the cluster's keys and tokens cannot be read.
    pub async fn start(options: &HeadOptions, error: &HeadError) -> Result<Option<RecoveryMode>, HeadError> {
        let HeadError::CannotReplay { path: journal, event, .. } = error else { return Ok(None) };
        let (folder, noted) = (options.state_dir.clone(), journal.clone());
        let opened = blocking(move || {
            let state = StateDir::open(&folder)?;
            let identity = HeadIdentity::open_or_create(&state.identity())?;
            let tokens = TokenStore::open(&state.tokens(), identity.fingerprint())?;
            let is_noted = ReplayNoteFile::beside(&noted).read().is_some();
            Ok::<_, HeadError>((identity, tokens, is_noted))
        });
        let (identity, tokens, is_noted) = opened.await?;
        let listener = Listener::bind(options.listen, &identity, tokens).await;
        let listener = listener.map_err(|error| HeadError::Listen(error.into()))?;
        let message = format!("it is in recovery mode: {error}");
        Ok(Some(RecoveryMode { listener, message, journal: journal.clone(), event: *event, is_noted }))
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// Refuses everybody until the event is set aside, or is to be tried again.
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
        let (journal, event, is_noted) = (self.journal.clone(), self.event, self.is_noted);
        blocking(move || {
            is_quarantined(&journal, event) || (is_noted && ReplayNoteFile::beside(&journal).read().is_none())
        })
        .await
    }
}
