//! The actor that looks at all GPUs from time to time, and listens for their critical errors.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, Context};
use cohabit_gpu::{NvmlSession, XidWatch};
use cohabit_types::DeviceId;
use cohabit_worker_core::WorkerEvent;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::mps::MpsMessage;
use super::owners::ProcessOwners;
use super::round::{LibraryState, ScanRound};
use super::xids;
use crate::daemon::driver::DriverMessage;

/// How often it looks.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);

/// How often it tries to listen, where the driver does not let it.
const LISTEN_RETRY: Duration = Duration::from_secs(600);

/// How often it opens the library anew at most: means over time begin anew with it, also those of GPUs that
/// are well.
const REOPEN_INTERVAL: Duration = Duration::from_secs(60);

/// What the monitor is told.
pub(crate) enum MonitorMessage {
    /// It is time to look.
    Look,
    /// The driver tells of critical errors no more.
    XidsEnded,
}

/// What looks and listens.
pub(crate) struct Monitor {
    library: Option<PathBuf>,
    /// The actor of each GPU's MPS daemon.
    mps: BTreeMap<DeviceId, Address<MpsMessage>>,
    owners: ProcessOwners,
    driver: Address<DriverMessage>,
    /// None before the first look, and when the library must be opened anew.
    gpus: Option<Arc<NvmlSession>>,
    /// When a library that has lost a GPU may be opened anew.
    may_open_at: Instant,
    xid_listening: XidListening,
    /// What the log was last told of; nothing while all is well.
    troubles: Vec<String>,
}

/// Whether critical errors are listened for.
#[derive(Debug)]
enum XidListening {
    On,
    /// Until then; why, if that was tried.
    Off(Instant, Option<String>),
}

impl Monitor {
    pub(crate) fn new(
        library: Option<PathBuf>,
        mps: BTreeMap<DeviceId, Address<MpsMessage>>,
        owners: ProcessOwners,
        driver: Address<DriverMessage>,
    ) -> Monitor {
        let now = Instant::now();
        let (xid_listening, troubles) = (XidListening::Off(now, None), Vec::new());
        Monitor { library, mps, owners, driver, gpus: None, may_open_at: now, xid_listening, troubles }
    }
}

impl Actor for Monitor {
    type Message = MonitorMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        context.send_after(Duration::ZERO, MonitorMessage::Look);
        Ok(())
    }

    async fn handle(
        &mut self,
        message: MonitorMessage,
        context: &mut Context<Self>,
    ) -> Result<(), ActorFailure> {
        match message {
            MonitorMessage::Look => {
                if let Some(gpus) = self.open().await? {
                    self.listen_if_due(context, Arc::clone(&gpus)).await?;
                    self.look(gpus).await?;
                }
                context.send_after(SCAN_INTERVAL, MonitorMessage::Look);
            }
            MonitorMessage::XidsEnded => {
                self.xid_listening = XidListening::Off(Instant::now() + LISTEN_RETRY, None)
            }
        }
        Ok(())
    }
}

impl Monitor {
    /// A library that cannot be opened says nothing of the GPUs: programs may run on while it is replaced.
    async fn open(&mut self) -> Result<Option<Arc<NvmlSession>>, ActorFailure> {
        if let Some(gpus) = &self.gpus {
            return Ok(Some(Arc::clone(gpus)));
        }
        let library = self.library.clone();
        match spawn_blocking(move || NvmlSession::open(library.as_deref())).await? {
            Ok(gpus) => {
                self.xid_listening = XidListening::Off(Instant::now(), None);
                Ok(Some(Arc::clone(self.gpus.insert(Arc::new(gpus)))))
            }
            Err(error) => {
                self.log_problems(vec![error.to_string()]);
                Ok(None)
            }
        }
    }

    async fn look(&mut self, gpus: Arc<NvmlSession>) -> Result<(), ActorFailure> {
        let (owners, devices) = (self.owners.clone(), self.mps.keys().cloned().collect::<Vec<DeviceId>>());
        let round = spawn_blocking(move || ScanRound::of(&gpus, &devices, &owners)).await?;
        if round.library == LibraryState::Stale {
            self.close_if_due().await?;
        }
        let deafness = match &self.xid_listening {
            XidListening::Off(_, why) => why.clone(),
            XidListening::On => None,
        };
        self.log_problems(round.troubles.into_iter().chain(deafness).collect());
        for (device, holders) in round.holders {
            if let Some(mps) = self.mps.get(&device) {
                // One that is too busy will hear of the next look.
                let _ = mps.try_tell(MpsMessage::HeldBy(holders));
            }
        }
        if !round.samples.is_empty() {
            self.driver.tell(DriverMessage::Happened(WorkerEvent::Sampled(round.samples))).await?;
        }
        Ok(())
    }

    /// A GPU that is lost stays so for a library that is open.
    async fn close_if_due(&mut self) -> Result<(), ActorFailure> {
        let now = Instant::now();
        if now >= self.may_open_at {
            self.may_open_at = now + REOPEN_INTERVAL;
            let stale = self.gpus.take();
            // It may take a while.
            spawn_blocking(move || drop(stale)).await?;
        }
        Ok(())
    }

    async fn listen_if_due(
        &mut self,
        context: &mut Context<Self>,
        gpus: Arc<NvmlSession>,
    ) -> Result<(), ActorFailure> {
        match self.xid_listening {
            XidListening::Off(due_at, _) if due_at <= Instant::now() => {}
            XidListening::Off(..) | XidListening::On => return Ok(()),
        }
        match spawn_blocking(move || gpus.xids()).await? {
            Ok(watch) => self.listen(context, watch)?,
            Err(error) => {
                let why = format!("critical errors are not listened for: {error}");
                self.xid_listening = XidListening::Off(Instant::now() + LISTEN_RETRY, Some(why));
            }
        }
        Ok(())
    }

    fn listen(&mut self, context: &mut Context<Self>, watch: XidWatch) -> Result<(), ActorFailure> {
        let mut xids = xids::listen_for_xids(watch)?;
        let (driver, monitor) = (self.driver.clone(), context.address().clone());
        self.xid_listening = XidListening::On;
        context.spawn_task(async move {
            while let Some(xid) = xids.recv().await {
                tracing::warn!(gpu = %xid.device, xid = xid.code, "the driver reports a critical error");
                // Without a driver the daemon is stopping.
                let _ = driver.tell(DriverMessage::Happened(WorkerEvent::Xid(xid.device, xid.code))).await;
            }
            let _ = monitor.tell(MonitorMessage::XidsEnded).await;
        });
        Ok(())
    }

    /// Each trouble is told once, until there is another.
    fn log_problems(&mut self, troubles: Vec<String>) {
        for trouble in troubles.iter().filter(|trouble| !self.troubles.contains(trouble)) {
            tracing::warn!(trouble, "not all is seen of the GPUs");
        }
        self.troubles = troubles;
    }
}
