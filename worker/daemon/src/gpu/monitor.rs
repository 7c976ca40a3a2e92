//! The actor that scans all GPUs periodically and listens for their critical errors.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, Context, blocking};
use cohabit_gpu::{NvmlSession, XidWatch};
use cohabit_types::DeviceId;
use cohabit_worker_core::WorkerEvent;
use tokio::time::Instant;

use super::mps::MpsMessage;
use super::process_owners::ProcessOwners;
use super::scan_round::{LibraryState, ScanRound};
use super::xids;
use crate::messages::DriverMessage;

/// How often it scans.
const SCAN_INTERVAL: Duration = Duration::from_secs(2);

/// How long it waits before it tries to listen again, if the driver refused.
const LISTEN_RETRY: Duration = Duration::from_secs(600);

/// The least time between two reopenings of the library, which restarts the averages of all GPUs.
const REOPEN_INTERVAL: Duration = Duration::from_secs(60);

/// Messages to the monitor actor.
pub(crate) enum MonitorMessage {
    /// It is time to scan.
    Scan,
    /// No more critical errors are received.
    XidsEnded,
}

/// The monitor of all GPUs.
pub(crate) struct Monitor {
    library: Option<PathBuf>,
    /// The actor of each GPU's MPS daemon.
    mps: BTreeMap<DeviceId, Address<MpsMessage>>,
    owners: ProcessOwners,
    driver: Address<DriverMessage>,
    /// `None` before the first scan, and when the library must be reopened.
    gpus: Option<Arc<NvmlSession>>,
    /// When a library that has lost a GPU may be reopened.
    may_open_at: Instant,
    xid_listening: XidListening,
    /// The problems that were logged last; empty while there are none.
    problems: Vec<String>,
}

/// Whether critical errors are received.
#[derive(Debug)]
enum XidListening {
    On,
    /// Not until this time; why, if listening was tried.
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
        let (xid_listening, problems) = (XidListening::Off(now, None), Vec::new());
        Monitor { library, mps, owners, driver, gpus: None, may_open_at: now, xid_listening, problems }
    }
}

impl Actor for Monitor {
    type Message = MonitorMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        context.send_after(Duration::ZERO, MonitorMessage::Scan);
        Ok(())
    }

    async fn handle(
        &mut self,
        message: MonitorMessage,
        context: &mut Context<Self>,
    ) -> Result<(), ActorFailure> {
        match message {
            MonitorMessage::Scan => {
                if let Some(gpus) = self.open().await? {
                    self.listen_if_due(context, Arc::clone(&gpus)).await?;
                    self.scan(gpus).await?;
                }
                context.send_after(SCAN_INTERVAL, MonitorMessage::Scan);
            }
            MonitorMessage::XidsEnded => {
                self.xid_listening = XidListening::Off(Instant::now() + LISTEN_RETRY, None)
            }
        }
        Ok(())
    }
}

impl Monitor {
    /// A library that cannot be opened says nothing about the GPUs: it may be being replaced while programs
    /// run on.
    async fn open(&mut self) -> Result<Option<Arc<NvmlSession>>, ActorFailure> {
        if let Some(gpus) = &self.gpus {
            return Ok(Some(Arc::clone(gpus)));
        }
        let library = self.library.clone();
        match blocking(move || NvmlSession::open(library.as_deref())).await {
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

    async fn scan(&mut self, gpus: Arc<NvmlSession>) -> Result<(), ActorFailure> {
        let (owners, devices) = (self.owners.clone(), self.mps.keys().cloned().collect::<Vec<DeviceId>>());
        let round = blocking(move || ScanRound::scan(&gpus, &devices, &owners)).await;
        if round.library == LibraryState::Stale {
            self.close_if_due().await?;
        }
        let not_listening = match &self.xid_listening {
            XidListening::Off(_, why) => why.clone(),
            XidListening::On => None,
        };
        self.log_problems(round.problems.into_iter().chain(not_listening).collect());
        for (device, holders) in round.holders {
            if let Some(mps) = self.mps.get(&device) {
                // An actor that is too busy gets the next scan.
                let _ = mps.try_tell(MpsMessage::HeldBy(holders));
            }
        }
        if !round.samples.is_empty() {
            self.driver.tell(DriverMessage::Worker(WorkerEvent::Sampled(round.samples))).await?;
        }
        Ok(())
    }

    /// An open library never finds a lost GPU again, so it is closed, to be reopened by the next scan.
    async fn close_if_due(&mut self) -> Result<(), ActorFailure> {
        let now = Instant::now();
        if now >= self.may_open_at {
            self.may_open_at = now + REOPEN_INTERVAL;
            let stale = self.gpus.take();
            blocking(move || drop(stale)).await;
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
        match blocking(move || gpus.xids()).await {
            Ok(watch) => self.listen(context, watch)?,
            Err(error) => {
                let why = format!("critical errors of GPUs are not received: {error}");
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
                let _ = driver.tell(DriverMessage::Worker(WorkerEvent::Xid(xid.device, xid.code))).await;
            }
            let _ = monitor.tell(MonitorMessage::XidsEnded).await;
        });
        Ok(())
    }

    /// Logs each problem once, as long as it lasts.
    fn log_problems(&mut self, problems: Vec<String>) {
        for problem in problems.iter().filter(|problem| !self.problems.contains(problem)) {
            tracing::warn!(problem, "the GPUs cannot be monitored completely");
        }
        self.problems = problems;
    }
}
