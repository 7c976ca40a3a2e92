//! Carries out the core's orders to a GPU's MPS daemon.
//!
//! Each order is answered in bounded time, even if the daemon hangs: one that does not respond is given up,
//! and what it does later is undone.

use std::sync::Arc;
use std::time::Duration;

use cohabit_gpu::mps::{MpsDaemon, MpsError};
use cohabit_worker_core::{MpsEvent, MpsOrder};
use nix::unistd::geteuid;
use tokio::time::Instant;

use super::{DaemonState, MpsManager};
use crate::gpu::timeout::run_with_timeout;
use crate::isolation::Isolator;

/// How long an order may take.
const ORDER_TIMEOUT: Duration = Duration::from_secs(130);

/// How long a server may take to become active once its clients are gone, before everything is restarted.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a daemon may take to stop by its own command.
const QUIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The same while this worker daemon is stopping.
const SHUTDOWN_QUIT_TIMEOUT: Duration = Duration::from_secs(1);

impl MpsManager {
    /// Carries out an order and returns its answer.
    pub(super) async fn execute(&mut self, order: MpsOrder) -> MpsEvent {
        let (done, answer) = match &order {
            MpsOrder::Start(account) => (self.start(account.clone()).await, MpsEvent::Up),
            MpsOrder::Adopt(_) => (self.adopt().await, MpsEvent::Up),
            MpsOrder::Recover(account) => (self.recover(account.clone()).await, MpsEvent::Up),
            MpsOrder::Stop => (self.stop().await, MpsEvent::Stopped),
        };
        match done {
            Ok(()) => tracing::info!(gpu = %self.gpu, ?order, "an order to the MPS daemon was carried out"),
            Err(why) => {
                tracing::warn!(gpu = %self.gpu, ?order, why, "an order to the MPS daemon failed");
                // A daemon that does not stop counts as stopped: ranks without MPS never meet it.
                return if answer == MpsEvent::Stopped { answer } else { MpsEvent::Failed(why) };
            }
        }
        answer
    }

    /// Starts a daemon for the ranks of this account, or of all.
    async fn start(&mut self, account: Option<Arc<str>>) -> Result<(), String> {
        let (programs, directory, gpu) = (self.programs.clone()?, self.directory.clone(), self.gpu.clone());
        let isolation = self.isolation.clone();
        let start = move || MpsDaemon::start(&programs, &directory, &gpu, user_of(account, &isolation)?);
        let started = run_with_timeout(ORDER_TIMEOUT, start, give_up).await?;
        self.set_up(started.map_err(|error| error.to_string())?).await;
        Ok(())
    }

    async fn adopt(&mut self) -> Result<(), String> {
        let daemon = self.find_earlier().await?;
        self.set_up(daemon.ok_or("the MPS daemon of the earlier worker is no longer running")?).await;
        Ok(())
    }

    /// A daemon that was given up is started again.
    async fn recover(&mut self, account: Option<Arc<str>>) -> Result<(), String> {
        let (DaemonState::Up(mut daemon) | DaemonState::Faulted(Some(mut daemon))) = self.take() else {
            return self.start(account).await;
        };
        let isolation = self.isolation.clone();
        let work = move || {
            let user = user_of(account, &isolation)?;
            daemon.recover(RECOVERY_TIMEOUT, user).map(|()| daemon)
        };
        let recovered = run_with_timeout(ORDER_TIMEOUT, work, give_up).await?;
        self.set_up(recovered.map_err(|error| error.to_string())?).await;
        Ok(())
    }

    async fn stop(&mut self) -> Result<(), String> {
        let daemon = match self.take() {
            DaemonState::Up(daemon) | DaemonState::Faulted(Some(daemon)) => Some(daemon),
            DaemonState::Absent | DaemonState::Faulted(None) => self.find_earlier().await?,
        };
        match daemon {
            Some(daemon) => quit(daemon, QUIT_TIMEOUT).await,
            None => Ok(()),
        }
    }

    /// Stops a daemon that was not adopted.
    pub(super) async fn settle(&mut self) {
        if matches!(self.daemon, DaemonState::Absent)
            && let Err(why) = self.stop().await
        {
            tracing::warn!(gpu = %self.gpu, why, "the MPS daemon of an earlier worker cannot be stopped");
        }
    }

    /// Stops an unused daemon while this worker daemon is stopping.
    pub(super) async fn leave(&mut self) {
        if let DaemonState::Up(daemon) = self.take()
            && let Err(why) = quit(daemon, SHUTDOWN_QUIT_TIMEOUT).await
        {
            tracing::warn!(gpu = %self.gpu, why, "an idle MPS daemon is left running");
        }
    }

    /// The daemon in our directory, if one runs there. Without the programs there can be none.
    async fn find_earlier(&self) -> Result<Option<MpsDaemon>, String> {
        let (Ok(programs), directory, gpu) =
            (self.programs.clone(), self.directory.clone(), self.gpu.clone())
        else {
            return Ok(None);
        };
        let adopt = move || MpsDaemon::adopt(&programs, &directory, &gpu);
        run_with_timeout(ORDER_TIMEOUT, adopt, drop).await?.map_err(|error| error.to_string())
    }

    /// A server that was started or has restarted has no limit of its own yet.
    async fn set_up(&mut self, daemon: MpsDaemon) {
        self.daemon = DaemonState::Up(daemon);
        self.asked_at = Instant::now();
        self.limits.note_server(None);
        self.limit_server().await;
    }
}

/// The user id of the ranks of this account, or of this process. Blocks.
fn user_of(account: Option<Arc<str>>, isolation: &Isolator) -> Result<u32, MpsError> {
    match account {
        Some(account) => isolation.user_of(&account).map_err(|error| MpsError(error.to_string())),
        None => Ok(geteuid().as_raw()),
    }
}

/// Stops a daemon that came up too late.
fn give_up(daemon: Result<MpsDaemon, MpsError>) {
    if let Ok(daemon) = daemon
        && let Err(error) = daemon.quit(QUIT_TIMEOUT)
    {
        tracing::warn!(%error, "an MPS daemon that came up too late could not be stopped");
    }
}

async fn quit(daemon: MpsDaemon, timeout: Duration) -> Result<(), String> {
    run_with_timeout(ORDER_TIMEOUT, move || daemon.quit(timeout), drop)
        .await?
        .map_err(|error| error.to_string())
}
