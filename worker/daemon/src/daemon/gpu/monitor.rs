//! The actor that looks at all GPUs from time to time, and listens for their critical errors.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::{Actor, Address, Context, Failure};
use cohabit_gpu::{Gpus, XidWatch};
use cohabit_types::DeviceId;
use cohabit_worker_core::Event;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::mps::MpsMessage;
use super::owners::Owners;
use super::round::{Library, Round};
use super::xids;
use crate::daemon::driver::DriverMessage;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(2);

/// How often it tries to listen, where the driver does not let it.
const LISTEN_AGAIN: Duration = Duration::from_secs(600);

/// How often it opens the library anew at most: means over time begin anew with it, also those of GPUs that
/// are well.
const OPEN_AGAIN: Duration = Duration::from_secs(60);

/// What the monitor is told.
pub(crate) enum MonitorMessage {
    /// It is time to look.
    Look,
    /// The driver tells of critical errors no more.
    Deaf,
}

/// What looks and listens.
pub(crate) struct Monitor {
    library: Option<PathBuf>,
    /// The actor of each GPU's MPS daemon.
    mps: BTreeMap<DeviceId, Address<MpsMessage>>,
    owners: Owners,
    driver: Address<DriverMessage>,
    /// None before the first look, and when the library must be opened anew.
    gpus: Option<Arc<Gpus>>,
    /// When a library that has lost a GPU may be opened anew.
    may_open_at: Instant,
    hearing: Hearing,
    /// What the log was last told of; nothing while all is well.
    troubles: Vec<String>,
}

/// Whether critical errors are listened for.
#[derive(Debug)]
enum Hearing {
    On,
    /// Until then; why, if that was tried.
    Off(Instant, Option<String>),
}

impl Monitor {
    pub(crate) fn new(
        library: Option<PathBuf>,
        mps: BTreeMap<DeviceId, Address<MpsMessage>>,
        owners: Owners,
        driver: Address<DriverMessage>,
    ) -> Monitor {
        let now = Instant::now();
        let (hearing, troubles) = (Hearing::Off(now, None), Vec::new());
        Monitor { library, mps, owners, driver, gpus: None, may_open_at: now, hearing, troubles }
    }
}

impl Actor for Monitor {
    type Message = MonitorMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), Failure> {
        context.send_after(Duration::ZERO, MonitorMessage::Look);
        Ok(())
    }

    async fn handle(&mut self, message: MonitorMessage, context: &mut Context<Self>) -> Result<(), Failure> {
        match message {
            MonitorMessage::Look => {
                if let Some(gpus) = self.open().await? {
                    self.listen_if_due(context, Arc::clone(&gpus)).await?;
                    self.look(gpus).await?;
                }
                context.send_after(LOOK, MonitorMessage::Look);
            }
            MonitorMessage::Deaf => self.hearing = Hearing::Off(Instant::now() + LISTEN_AGAIN, None),
        }
        Ok(())
    }
}

impl Monitor {
    /// A library that cannot be opened says nothing of the GPUs: programs may run on while it is replaced.
    async fn open(&mut self) -> Result<Option<Arc<Gpus>>, Failure> {
        if let Some(gpus) = &self.gpus {
            return Ok(Some(Arc::clone(gpus)));
        }
        let library = self.library.clone();
        match spawn_blocking(move || Gpus::open(library.as_deref())).await? {
            Ok(gpus) => {
                self.hearing = Hearing::Off(Instant::now(), None);
                Ok(Some(Arc::clone(self.gpus.insert(Arc::new(gpus)))))
            }
            Err(error) => {
                self.complain(vec![error.to_string()]);
                Ok(None)
            }
        }
    }

    async fn look(&mut self, gpus: Arc<Gpus>) -> Result<(), Failure> {
        let (owners, devices) = (self.owners.clone(), self.mps.keys().cloned().collect::<Vec<DeviceId>>());
        let round = spawn_blocking(move || Round::of(&gpus, &devices, &owners)).await?;
        if round.library == Library::Stale {
            self.close_if_due().await?;
        }
        let deafness = match &self.hearing {
            Hearing::Off(_, why) => why.clone(),
            Hearing::On => None,
        };
        self.complain(round.troubles.into_iter().chain(deafness).collect());
        for (device, holders) in round.holders {
            if let Some(mps) = self.mps.get(&device) {
                // One that is too busy will hear of the next look.
                let _ = mps.try_tell(MpsMessage::HeldBy(holders));
            }
        }
        if !round.samples.is_empty() {
            self.driver.tell(DriverMessage::Happened(Event::Sampled(round.samples))).await?;
        }
        Ok(())
    }

    /// A GPU that is lost stays so for a library that is open.
    async fn close_if_due(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        if now >= self.may_open_at {
            self.may_open_at = now + OPEN_AGAIN;
            let stale = self.gpus.take();
            // It may take a while.
            spawn_blocking(move || drop(stale)).await?;
        }
        Ok(())
    }

    async fn listen_if_due(&mut self, context: &mut Context<Self>, gpus: Arc<Gpus>) -> Result<(), Failure> {
        match self.hearing {
            Hearing::Off(due_at, _) if due_at <= Instant::now() => {}
            Hearing::Off(..) | Hearing::On => return Ok(()),
        }
        match spawn_blocking(move || gpus.xids()).await? {
            Ok(watch) => self.listen(context, watch)?,
            Err(error) => {
                let why = format!("critical errors are not listened for: {error}");
                self.hearing = Hearing::Off(Instant::now() + LISTEN_AGAIN, Some(why));
            }
        }
        Ok(())
    }

    fn listen(&mut self, context: &mut Context<Self>, watch: XidWatch) -> Result<(), Failure> {
        let mut xids = xids::heard_by(watch)?;
        let (driver, monitor) = (self.driver.clone(), context.address().clone());
        self.hearing = Hearing::On;
        context.alongside(async move {
            while let Some(xid) = xids.recv().await {
                tracing::warn!(gpu = %xid.device, xid = xid.code, "the driver reports a critical error");
                // Without a driver the daemon is stopping.
                let _ = driver.tell(DriverMessage::Happened(Event::Xid(xid.device, xid.code))).await;
            }
            let _ = monitor.tell(MonitorMessage::Deaf).await;
        });
        Ok(())
    }

    /// Each trouble is told once, until there is another.
    fn complain(&mut self, troubles: Vec<String>) {
        for trouble in troubles.iter().filter(|trouble| !self.troubles.contains(trouble)) {
            tracing::warn!(trouble, "not all is seen of the GPUs");
        }
        self.troubles = troubles;
    }
}
