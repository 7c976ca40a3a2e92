//! The link to the head: connects, says hello, carries reports one way and orders the other, and reconnects
//! when it breaks.
//!
//! It knows nothing about ranks. Reports leave in the order in which the core made them; a batch waits until
//! the head has taken the one before.

use std::sync::Arc;
use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, Context, blocking};
use cohabit_host::clock;
use cohabit_net::{
    Backoff, Endpoint, HelloRefusalCode, LinkError, LinkErrorKind, MAX_CALL, WorkerHello, WorkerLink,
    WorkerReports, WorkerService, connect_worker, context_for,
};
use cohabit_types::{
    CheckpointPiece, CheckpointQuery, CopyId, CopyPiece, CopyRead, ExecId, ExecOutput, ExecRead, ExecRequest,
    FileCopyOrder, ForwardId, ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest, Incarnation,
    InputPiece, LogChunk, LogRequest, MetricSeries, Order, RankId, Refusal, Report, Span, Time, WorkerKey,
};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};

use crate::checkpoints::CheckpointArchives;
use crate::copies::Copies;
use crate::exec;
use crate::forward::Forwards;
use crate::input;
use crate::logs;
use crate::machine_info::MachineInfo;
use crate::messages::{DriverMessage, LinkBegin};
use crate::metrics;
use crate::report_batches::ReportBatches;
use crate::state_directory::StateDirectory;

/// Reports that may be queued while a batch is being sent.
const REPORTS: usize = 4096;

/// A head that has not taken a heartbeat after this time is unreachable.
const HEARTBEAT_LIMIT: Span = Span::from_secs(10);

/// What the link tells itself.
pub(crate) enum LinkMessage {
    /// Connect to the head.
    Dial,
    /// The current link has ended.
    Ended(Incarnation, String),
}

/// The actor of this worker's one link.
#[derive(Clone)]
pub(crate) struct HeadLinkActor {
    endpoint: Endpoint,
    machine: MachineInfo,
    state: StateDirectory,
    /// Checkpoints that other workers read.
    archives: CheckpointArchives,
    /// Copies of files of jobs; they outlive a link.
    copies: Copies,
    /// Connections to ports of jobs; they outlive a link.
    forwards: Forwards,
    driver: Address<DriverMessage>,
    heartbeat: Duration,
    linked: watch::Sender<bool>,
    refuser: mpsc::Sender<LinkError>,
    backoff: Backoff,
    /// Whether a head has ever accepted this daemon.
    join_history: JoinHistory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JoinHistory {
    Never,
    Before,
}

impl HeadLinkActor {
    pub(crate) fn new(
        endpoint: Endpoint,
        machine: MachineInfo,
        (state, archives, copies): (StateDirectory, CheckpointArchives, Copies),
        driver: Address<DriverMessage>,
        heartbeat: Span,
        linked: watch::Sender<bool>,
        refuser: mpsc::Sender<LinkError>,
    ) -> HeadLinkActor {
        let heartbeat = Duration::from(heartbeat).max(Duration::from_millis(10));
        HeadLinkActor {
            endpoint,
            machine,
            state,
            archives,
            copies,
            forwards: Forwards::default(),
            driver,
            heartbeat,
            linked,
            refuser,
            backoff: Backoff::default(),
            join_history: JoinHistory::Never,
        }
    }
}

impl Actor for HeadLinkActor {
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
                tracing::warn!(link = incarnation.0, why, "the link to the head has ended: reconnecting");
                self.linked.send_replace(false);
                self.driver.tell(DriverMessage::Unlinked(incarnation)).await?;
                self.dial_later(context);
            }
        }
        Ok(())
    }
}

impl HeadLinkActor {
    async fn dial(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        let state = self.state.clone();
        let key = match blocking(move || state.next_key()).await {
            Ok(key) => key,
            Err(error) => {
                tracing::warn!(%error, "not connected: the id of a new link cannot be stored");
                self.dial_later(context);
                return Ok(());
            }
        };
        let present = self.driver.ask(DriverMessage::Inventory).await?;
        let (machine, head) = (self.machine.clone(), self.endpoint.address.clone());
        // Resolves names.
        let inventory = blocking(move || machine.inventory(&head, present)).await;
        let hello = WorkerHello { key, credential: Some(self.state.credential()), inventory };
        let (opener, opened) = watch::channel(false);
        let service = LinkService {
            link: key.incarnation,
            driver: self.driver.clone(),
            state: self.state.clone(),
            archives: self.archives.clone(),
            copies: self.copies.clone(),
            forwards: self.forwards.clone(),
            node: Arc::from(&*self.machine.name),
            opened,
        };
        let at = clock::now();
        match connect_worker(&self.endpoint, hello, service).await {
            Ok(link) => self.begin(context, key, at, link, &opener).await,
            Err(error) => self.handle_dial_error(context, error).await,
        }
    }

    /// The core hears of the link before the first order arrives over it.
    async fn begin(
        &mut self,
        context: &mut Context<Self>,
        key: WorkerKey,
        at: Time,
        link: WorkerLink,
        opener: &watch::Sender<bool>,
    ) -> Result<(), ActorFailure> {
        let (reporter, reports) = mpsc::channel(REPORTS);
        let head = link.head.clone();
        let begin = LinkBegin { incarnation: key.incarnation, reports: reporter, head, at };
        self.driver.tell(DriverMessage::Linked(begin)).await?;
        opener.send_replace(true);
        tracing::info!(head = self.endpoint.address, link = key.incarnation.0, "joined the cluster");
        self.backoff.reset();
        self.join_history = JoinHistory::Before;
        self.linked.send_replace(true);
        let (address, heartbeat, driver) = (context.address().clone(), self.heartbeat, self.driver.clone());
        context.spawn_task(async move {
            let beat = Heartbeat { interval: heartbeat, link: key.incarnation, driver };
            let why = run_link(link, reports, beat).await;
            // Without an actor the daemon is stopping.
            let _ = address.tell(LinkMessage::Ended(key.incarnation, why)).await;
        });
        Ok(())
    }

    /// A worker that was never accepted and never will be ends with the error. One that was accepted before
    /// tries again.
    async fn handle_dial_error(
        &mut self,
        context: &mut Context<Self>,
        error: LinkError,
    ) -> Result<(), ActorFailure> {
        let is_final = self.join_history == JoinHistory::Never && error.kind() != LinkErrorKind::Unreachable;
        if is_final {
            // The receiver is gone if the daemon is being dropped.
            let _ = self.refuser.send(error).await;
            context.stop();
            return Ok(());
        }
        tracing::warn!(%error, "not connected: trying again");
        if let LinkError::Refused { code: HelloRefusalCode::Recovering, .. } = error {
            self.driver.tell(DriverMessage::HeadRecovers).await?;
        }
        self.dial_later(context);
        Ok(())
    }

    fn dial_later(&mut self, context: &mut Context<Self>) {
        context.send_after(self.backoff.next_delay(), LinkMessage::Dial);
    }
}

/// Carries reports and heartbeats until the link ends, and returns why it did. A head may take long for
/// reports, for example because its disk is full, as long as it takes heartbeats.
async fn run_link(link: WorkerLink, reports: mpsc::Receiver<Report>, heartbeat: Heartbeat) -> String {
    let WorkerLink { head, closed, .. } = link;
    tokio::select! {
        end = closed => end.to_string(),
        why = forward_reports(&head, reports) => why,
        why = heartbeat.beat(&head) => why,
    }
}

async fn forward_reports(head: &WorkerReports, reports: mpsc::Receiver<Report>) -> String {
    let mut batches = ReportBatches::of(reports);
    while let Some(batch) = batches.next().await {
        if let Err(error) = head.report(context_for(MAX_CALL), batch).await {
            return format!("the head does not answer: {error}");
        }
    }
    "the head accepted reports too slowly".to_owned()
}

/// Asks the head again and again whether it is there, and tells the driver.
struct Heartbeat {
    interval: Duration,
    link: Incarnation,
    driver: Address<DriverMessage>,
}

impl Heartbeat {
    async fn beat(&self, head: &WorkerReports) -> String {
        let mut beat = interval(self.interval);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beat.tick().await;
            // The head may count the silence of this worker from when it got the question.
            let asked_at = clock::now();
            if let Err(error) = head.heartbeat(context_for(HEARTBEAT_LIMIT)).await {
                return format!("the head does not answer: {error}");
            }
            // Without a driver the daemon is stopping.
            let _ = self.driver.tell(DriverMessage::Reached(self.link, asked_at)).await;
        }
    }
}

/// The service that the head calls.
#[derive(Clone)]
struct LinkService {
    link: Incarnation,
    archives: CheckpointArchives,
    copies: Copies,
    forwards: Forwards,
    driver: Address<DriverMessage>,
    state: StateDirectory,
    /// The name of this node.
    node: Arc<str>,
    /// Whether the core knows of this link.
    opened: watch::Receiver<bool>,
}

impl WorkerService for LinkService {
    async fn order(mut self, _: cohabit_net::Context, orders: Vec<Order>) {
        // A link that never began, or a daemon that is stopping, ignores orders.
        if self.opened.wait_for(|opened| *opened).await.is_ok() {
            let _ = self.driver.tell(DriverMessage::Ordered(self.link, orders)).await;
        }
    }

    async fn read_log(self, _: cohabit_net::Context, request: LogRequest) -> Result<LogChunk, Refusal> {
        logs::read(&self.state, &self.node, request).await
    }

    async fn read_metrics(self, _: cohabit_net::Context, rank: RankId) -> Result<MetricSeries, Refusal> {
        metrics::read(&self.state, rank).await
    }

    async fn write_input(self, _: cohabit_net::Context, piece: InputPiece) -> Result<u64, Refusal> {
        input::write(&self.state, piece).await
    }

    async fn start_exec(self, _: cohabit_net::Context, request: Box<ExecRequest>) -> Result<(), Refusal> {
        exec::start(&self.state, *request).await
    }

    async fn read_exec(self, _: cohabit_net::Context, read: ExecRead) -> Result<ExecOutput, Refusal> {
        exec::read(&self.state, read).await
    }

    async fn end_exec(self, _: cohabit_net::Context, process: ExecId) -> Result<(), Refusal> {
        exec::end(&self.state, process).await
    }

    async fn open_forward(self, _: cohabit_net::Context, request: ForwardRequest) -> Result<(), Refusal> {
        self.forwards.open(&self.state, request).await
    }

    async fn read_forward(
        self,
        _: cohabit_net::Context,
        read: ForwardRead,
    ) -> Result<ForwardOutput, Refusal> {
        self.forwards.read(read).await
    }

    async fn write_forward(self, _: cohabit_net::Context, piece: ForwardPiece) -> Result<u64, Refusal> {
        self.forwards.write(piece).await
    }

    async fn close_forward(self, _: cohabit_net::Context, connection: ForwardId) -> Result<(), Refusal> {
        self.forwards.close(connection);
        Ok(())
    }

    async fn read_checkpoints(
        self,
        _: cohabit_net::Context,
        query: CheckpointQuery,
    ) -> Result<CheckpointPiece, Refusal> {
        self.archives.read(query).await
    }

    async fn start_copy(self, _: cohabit_net::Context, order: Box<FileCopyOrder>) -> Result<(), Refusal> {
        self.copies.start(*order).await
    }

    async fn read_copy(self, _: cohabit_net::Context, read: CopyRead) -> Result<CopyPiece, Refusal> {
        self.copies.read(read).await
    }

    async fn end_copy(self, _: cohabit_net::Context, copy: CopyId) -> Result<(), Refusal> {
        self.copies.end(copy);
        Ok(())
    }
}
