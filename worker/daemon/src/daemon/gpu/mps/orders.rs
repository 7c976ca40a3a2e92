//! How the core's orders to a GPU's MPS daemon are carried out.
//!
//! Each is answered in bounded time, even by a daemon that hangs: one that is not heard of for too long is
//! given up, and whatever it does later is undone.

use std::time::Duration;

use cohabit_gpu::mps::{MpsDaemon, MpsError};
use cohabit_worker_core::{MpsEvent, MpsOrder};
use tokio::time::Instant;

use super::{Mps, Service};
use crate::daemon::gpu::within::within;

/// How long an order may take.
const ORDER_TIMEOUT: Duration = Duration::from_secs(90);

/// How long a server may take to come back once its clients are gone, before everything is started anew.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a daemon may take to go by itself.
const QUIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The same while this worker daemon is being stopped.
const SHUTDOWN_QUIT_TIMEOUT: Duration = Duration::from_secs(1);

impl Mps {
    /// The answer of the order.
    pub(super) async fn execute(&mut self, order: MpsOrder) -> MpsEvent {
        let (done, word) = match order {
            MpsOrder::Start => (self.start().await, MpsEvent::Up),
            MpsOrder::Adopt => (self.adopt().await, MpsEvent::Up),
            MpsOrder::Recover => (self.recover().await, MpsEvent::Up),
            MpsOrder::Stop => (self.stop().await, MpsEvent::Stopped),
        };
        match done {
            Ok(()) => tracing::info!(gpu = %self.gpu, ?order, "an order to its MPS daemon was carried out"),
            Err(why) => {
                tracing::warn!(gpu = %self.gpu, ?order, why, "an order to its MPS daemon failed");
                // Of one that does not go, nothing more can be said. Nobody meets it: others are pointed
                // elsewhere.
                return if word == MpsEvent::Stopped { word } else { MpsEvent::Failed(why) };
            }
        }
        word
    }

    async fn start(&mut self) -> Result<(), String> {
        let (tools, home, gpu) = (self.tools.clone()?, self.home.clone(), self.gpu.clone());
        let started = within(ORDER_TIMEOUT, move || MpsDaemon::start(&tools, &home, &gpu), give_up).await?;
        self.is_up(started.map_err(|error| error.to_string())?);
        Ok(())
    }

    async fn adopt(&mut self) -> Result<(), String> {
        let daemon = self.left_by_others().await?;
        self.is_up(daemon.ok_or("the MPS daemon of the worker before runs no more")?);
        Ok(())
    }

    /// One that was given up is started anew.
    async fn recover(&mut self) -> Result<(), String> {
        let (Service::Up(mut daemon) | Service::Faulted(Some(mut daemon))) = self.take() else {
            return self.start().await;
        };
        let work = move || daemon.recover(RECOVERY_TIMEOUT).map(|()| daemon);
        let recovered = within(ORDER_TIMEOUT, work, give_up).await?;
        self.is_up(recovered.map_err(|error| error.to_string())?);
        Ok(())
    }

    async fn stop(&mut self) -> Result<(), String> {
        let daemon = match self.take() {
            Service::Up(daemon) | Service::Faulted(Some(daemon)) => Some(daemon),
            Service::Absent | Service::Faulted(None) => self.left_by_others().await?,
        };
        match daemon {
            Some(daemon) => quit(daemon, QUIT_TIMEOUT).await,
            None => Ok(()),
        }
    }

    /// Stops a daemon that nobody took over.
    pub(super) async fn settle(&mut self) {
        if matches!(self.service, Service::Absent)
            && let Err(why) = self.stop().await
        {
            tracing::warn!(gpu = %self.gpu, why, "an MPS daemon that an earlier worker left cannot be stopped");
        }
    }

    /// Stops a daemon that nobody uses while this worker daemon is being stopped.
    pub(super) async fn leave(&mut self) {
        if let Service::Up(daemon) = self.take()
            && let Err(why) = quit(daemon, SHUTDOWN_QUIT_TIMEOUT).await
        {
            tracing::warn!(gpu = %self.gpu, why, "an idle MPS daemon was left");
        }
    }

    /// The daemon in our home, if one runs there; none can where the programs are missing.
    async fn left_by_others(&self) -> Result<Option<MpsDaemon>, String> {
        let (Ok(tools), home, gpu) = (self.tools.clone(), self.home.clone(), self.gpu.clone()) else {
            return Ok(None);
        };
        within(ORDER_TIMEOUT, move || MpsDaemon::adopt(&tools, &home, &gpu), drop).await
    }

    fn is_up(&mut self, daemon: MpsDaemon) {
        self.service = Service::Up(daemon);
        self.asked_at = Instant::now();
    }
}

/// A daemon that came up when nobody waited for it any more must not stay.
fn give_up(daemon: Result<MpsDaemon, MpsError>) {
    if let Ok(daemon) = daemon
        && let Err(error) = daemon.quit(QUIT_TIMEOUT)
    {
        tracing::warn!(%error, "an MPS daemon that came too late could not be stopped");
    }
}

async fn quit(daemon: MpsDaemon, patience: Duration) -> Result<(), String> {
    within(ORDER_TIMEOUT, move || daemon.quit(patience), drop).await?.map_err(|error| error.to_string())
}
