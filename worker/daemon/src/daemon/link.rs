//! The link to the head: dials, greets, carries reports one way and orders the other, and dials again when it
//! breaks.
//!
//! It knows nothing of ranks. A report leaves in the order in which the core made it; the next batch waits
//! until the head has taken the one before.

use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, Context};
use cohabit_net::{
    Backoff, Endpoint, HeadServiceClient, LinkError, LinkErrorKind, MAX_CALL, WorkerHello, WorkerLink,
    WorkerService, connect_worker, context_for,
};
use cohabit_types::{Incarnation, LogChunk, LogRequest, Order, Refusal, Report, Span, WorkerKey};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::driver::DriverMessage;
use super::logs;
use super::machine::Machine;
use super::state::StateDirectory;

/// Reports that may wait while a batch is under way.
const REPORTS: usize = 4096;

/// The most reports in one batch.
const BATCH: usize = 256;

/// A head that has not taken a heartbeat after this long is not there.
const HEARTBEAT_LIMIT: Span = Span::from_secs(10);

/// What the link tells itself.
pub(crate) enum LinkMessage {
    /// Try to reach the head.
    Dial,
    /// The present link has ended.
    Ended(Incarnation, String),
}

/// The one link of this worker.
#[derive(Clone)]
pub(crate) struct Link {
    endpoint: Endpoint,
    machine: Machine,
    state: StateDirectory,
    driver: Address<DriverMessage>,
    heartbeat: Duration,
    linked: watch::Sender<bool>,
    refuser: mpsc::Sender<LinkError>,
    backoff: Backoff,
    /// Whether any head ever welcomed this daemon.
    join_history: JoinHistory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JoinHistory {
    Never,
    Before,
}

impl Link {
    pub(crate) fn new(
        endpoint: Endpoint,
        machine: Machine,
        state: StateDirectory,
        driver: Address<DriverMessage>,
        heartbeat: Span,
        linked: watch::Sender<bool>,
        refuser: mpsc::Sender<LinkError>,
    ) -> Link {
        let heartbeat = Duration::from(heartbeat).max(Duration::from_millis(10));
        Link {
            endpoint,
            machine,
            state,
            driver,
            heartbeat,
            linked,
            refuser,
            backoff: Backoff::default(),
            join_history: JoinHistory::Never,
        }
    }
}

impl Actor for Link {
    type Message = LinkMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        context.send_after(Duration::ZERO, LinkMessage::Dial);
        Ok(())
    }

    async fn handle(
        &mut self,
        message: LinkMessage,
        context: &mut Context<Self>,
    ) -> Result<(), ActorFailure> {
        match message {
            LinkMessage::Dial => {
                let shutdown = context.shutdown();
                tokio::select! {
                    () = shutdown.requested() => {}
                    dialled = self.dial(context) => dialled?,
                }
            }
            LinkMessage::Ended(incarnation, why) => {
                tracing::warn!(link = incarnation.0, why, "the link to the head has ended: dialling again");
                self.linked.send_replace(false);
                self.driver.tell(DriverMessage::Unlinked(incarnation)).await?;
                self.dial_later(context);
            }
        }
        Ok(())
    }
}

impl Link {
    async fn dial(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        let key = match self.state.next_key() {
            Ok(key) => key,
            Err(error) => {
                tracing::warn!(%error, "not linked: a new link must be written down first");
                self.dial_later(context);
                return Ok(());
            }
        };
        let present = self.driver.ask(DriverMessage::Greeting).await?;
        let hello = WorkerHello { key, inventory: self.machine.inventory(&self.endpoint.address, present) };
        let (opener, opened) = watch::channel(false);
        let service = LinkService {
            link: key.incarnation,
            driver: self.driver.clone(),
            state: self.state.clone(),
            opened,
        };
        match connect_worker(&self.endpoint, hello, service).await {
            Ok(link) => self.begin(context, key, link, &opener).await,
            Err(error) => {
                self.handle_dial_error(context, error).await;
                Ok(())
            }
        }
    }

    /// The core learns of the link before the first order over it.
    async fn begin(
        &mut self,
        context: &mut Context<Self>,
        key: WorkerKey,
        link: WorkerLink,
        opener: &watch::Sender<bool>,
    ) -> Result<(), ActorFailure> {
        let (reporter, reports) = mpsc::channel(REPORTS);
        self.driver.tell(DriverMessage::Linked(key.incarnation, reporter)).await?;
        opener.send_replace(true);
        tracing::info!(head = self.endpoint.address, link = key.incarnation.0, "joined the cluster");
        self.backoff.reset();
        self.join_history = JoinHistory::Before;
        self.linked.send_replace(true);
        let (address, heartbeat) = (context.address().clone(), self.heartbeat);
        context.spawn_task(async move {
            let why = run_link(link, reports, heartbeat).await;
            // Without an actor nobody dials again.
            let _ = address.tell(LinkMessage::Ended(key.incarnation, why)).await;
        });
        Ok(())
    }

    /// A worker that was never let in, and never will be, says so and ends; one that was waits for better
    /// times.
    async fn handle_dial_error(&mut self, context: &mut Context<Self>, error: LinkError) {
        let hopeless = self.join_history == JoinHistory::Never && error.kind() != LinkErrorKind::Unreachable;
        if hopeless {
            // Nobody listens when the daemon is being dropped.
            let _ = self.refuser.send(error).await;
            context.stop();
            return;
        }
        tracing::warn!(%error, "not linked: trying again");
        self.dial_later(context);
    }

    fn dial_later(&mut self, context: &mut Context<Self>) {
        context.send_after(self.backoff.next_delay(), LinkMessage::Dial);
    }
}

/// Carries reports and heartbeats until the link ends; says why it did. A head may take its time over
/// reports, if its disk is full for one, as long as it hears the heart.
async fn run_link(link: WorkerLink, reports: mpsc::Receiver<Report>, heartbeat: Duration) -> String {
    let WorkerLink { head, closed, .. } = link;
    tokio::select! {
        end = closed => end.to_string(),
        why = forward_reports(&head, reports) => why,
        why = beat(&head, heartbeat) => why,
    }
}

async fn forward_reports(head: &HeadServiceClient, mut reports: mpsc::Receiver<Report>) -> String {
    loop {
        let mut batch = Vec::new();
        if reports.recv_many(&mut batch, BATCH).await == 0 {
            return "the worker has too many reports for it".to_owned();
        }
        if let Err(error) = head.report(context_for(MAX_CALL), batch).await {
            return format!("the head does not answer: {error}");
        }
    }
}

async fn beat(head: &HeadServiceClient, heartbeat: Duration) -> String {
    let mut beat = interval(heartbeat);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        if let Err(error) = head.heartbeat(context_for(HEARTBEAT_LIMIT)).await {
            return format!("the head does not answer: {error}");
        }
    }
}

/// What the head calls.
#[derive(Clone)]
struct LinkService {
    link: Incarnation,
    driver: Address<DriverMessage>,
    state: StateDirectory,
    /// Whether the core knows of this link.
    opened: watch::Receiver<bool>,
}

impl WorkerService for LinkService {
    async fn order(mut self, _: cohabit_net::Context, orders: Vec<Order>) {
        // Neither a link that never began nor a daemon that stops has any use for orders.
        if self.opened.wait_for(|opened| *opened).await.is_ok() {
            let _ = self.driver.tell(DriverMessage::Ordered(self.link, orders)).await;
        }
    }

    async fn read_log(self, _: cohabit_net::Context, request: LogRequest) -> Result<LogChunk, Refusal> {
        logs::read(&self.state, request).await
    }
}
