//! A worker's session: it joins, gets orders in batches, reports, and is lost exactly once.
//!
//! The worker is welcomed when its join is durable, or while the journal cannot be written, and its reports
//! are passed on when the join is durable. However the link ends, the driver gets `Lost` after the last
//! report.
//!
//! Root on one worker must not hurt the others: what it sends is bounded in bytes, count and time here.

use std::fmt::Display;
use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_actor::{AskError, Mailbox, blocking, mailbox};
use cohabit_net::{Context, HeadService, WorkerOrders, WorkerPeer, WorkerSession, context_for};
use cohabit_types::{
    CheckpointPiece, CheckpointQuery, CheckpointRequest, CodeRequest, ContentPiece, CopyId, CopyPiece,
    CopyRead, ExecId, ExecOutput, ExecRead, ExecRequest, FileCopyOrder, ForwardId, ForwardOutput,
    ForwardPiece, ForwardRead, ForwardRequest, LogRequest, Order, RankId, Refusal, RefusalCode, Report, Span,
    WorkerKey,
};
use futures::FutureExt;
use tokio::sync::{Mutex, oneshot, watch};

use super::client::ending;
use super::context::SessionContext;
use super::{admit, checkpoints, code};
use crate::driver::{CopyMessage, Message, Query, SessionHandle, WorkerSessionMessage};
use crate::rates::{Bucket, BucketRate, pause};

/// How many orders may wait for a worker.
const CAPACITY: usize = 16_384;
/// The most orders in one message.
const MOST_ORDERS: usize = 256;
/// A message is sent when it weighs this much, in bytes.
const MAX_BATCH_BYTES: usize = 2 << 20;
/// How long a worker may take to accept orders.
const ORDER_LIMIT: Span = Span::from_secs(30);
/// How long a worker may take over a piece of a log; long enough for its long poll.
const LOG_LIMIT: Span = Span::from_secs(40);
/// How long a worker may take over a piece of checkpoints: before the first it makes an archive of all.
const CHECKPOINT_LIMIT: Span = Span::from_secs(600);

/// The most reports of one worker in the driver at once: requests of others wait for no more of them.
const MOST_REPORTS: usize = 256;
/// Reports of which a worker may send any number, see [`admit::rows`]: what a new link reports about all its
/// devices and ranks, and more than a busy node needs later.
const REPORT_RATE: BucketRate = BucketRate { per_second: 300.0, burst: 5_000.0 };

/// Lines of the log that say of one token that a worker with it was refused.
const REFUSAL_LINES: BucketRate = BucketRate { per_second: 0.2, burst: 30.0 };

/// The reason when there is no driver any more.
const STOPPING: &str = "the head is stopping";
/// The reason when the driver dropped its end of the session.
const DROPPED_BY_HEAD: &str = "the head closed it";

/// The session of one worker's link.
pub(super) struct WorkerSessionTask {
    key: WorkerKey,
    session_context: Arc<SessionContext>,
}

/// Handles the worker's calls.
#[derive(Clone)]
struct Reports {
    key: WorkerKey,
    heard: watch::Sender<()>,
    /// Whether the join is durable.
    durable: watch::Receiver<bool>,
    /// One call after the other passes its reports on, as fast as the bucket allows.
    turn: Arc<Mutex<Bucket>>,
    /// One piece of code is read after the other.
    reading: Arc<Mutex<()>>,
    session_context: Arc<SessionContext>,
}

/// Closes the link with its session, also when the session is cancelled while a log is read.
struct LinkGuard(WorkerSession);

impl Drop for LinkGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl WorkerSessionTask {
    pub(super) fn new(key: WorkerKey, session_context: Arc<SessionContext>) -> WorkerSessionTask {
        WorkerSessionTask { key, session_context }
    }

    pub(super) async fn run(self, peer: WorkerPeer) {
        let (name, address) = (peer.inventory().name.clone(), peer.address());
        let Some(peer) = self.admitted(peer).await else { return };
        tracing::info!(node = name, %address, worker = %self.key, "a worker connected");
        let why = self.join_and_serve(peer).await;
        tracing::info!(node = name, worker = %self.key, why, "a worker's link ended");
        // Without a driver the head is ending, and nobody has to know.
        let _ = self.session_context.driver.tell(Message::Lost(self.key, why)).await;
    }

    /// The worker, if it may act as the node that it claims to be, and describes one. If not, it hears why.
    async fn admitted(&self, peer: WorkerPeer) -> Option<WorkerPeer> {
        let context = Arc::clone(&self.session_context);
        let (peer, admitted) = blocking(move || {
            let admitted = admit::admit(&peer, &context);
            (peer, admitted)
        })
        .await;
        let Err((code, why)) = admitted else { return Some(peer) };
        let token = peer.by().user.clone();
        if self.session_context.refusal_lines.take(token, 1, REFUSAL_LINES, Instant::now()) {
            tracing::warn!(
                node = peer.inventory().name, token = peer.by().user, address = %peer.address(), why,
                "refused a worker"
            );
        }
        peer.refuse(code, why).await;
        None
    }

    /// Serves until the link ends; says why it did.
    async fn join_and_serve(&self, peer: WorkerPeer) -> String {
        let (orders, waiting) = mailbox(CAPACITY);
        let (close, mut closed_by_head) = oneshot::channel();
        let (key, inventory, session) =
            (self.key, admit::inventory(peer.inventory().clone()), SessionHandle { orders, close });
        let (welcome, welcomed) = oneshot::channel();
        let joined = self.session_context.driver.ask(|handled| Message::Joined {
            key,
            inventory,
            session,
            welcome,
            handled,
        });
        let mut joined = pin!(joined);
        let (is_durable, durable) = watch::channel(false);
        tokio::select! {
            biased;
            joined = &mut joined => match joined {
                Ok(()) => _ = is_durable.send_replace(true),
                Err(_) => return STOPPING.to_owned(),
            },
            Ok(()) = welcomed => {}
        }
        if let Ok(why) = closed_by_head.try_recv() {
            return why;
        }
        let (heard, hearing) = watch::channel(());
        let reports = Reports::new(key, Arc::clone(&self.session_context), heard, durable);
        let link = LinkGuard(peer.start_session(reports).await);
        let closed = link.0.closed.clone();
        let why = tokio::select! {
            biased;
            why = become_durable(joined, is_durable) => why,
            end = closed.clone() => end.to_string(),
            why = closed_by_head => why.unwrap_or_else(|_| DROPPED_BY_HEAD.to_owned()),
            why = silence(hearing, self.session_context.silence_limit) => why,
            why = pass_on(waiting, link.0.orders.clone()) => why,
        };
        drop(link);
        closed.await;
        why
    }
}

/// Waits until a join is durable that was not. Ends when it never will be.
async fn become_durable(
    joined: Pin<&mut impl Future<Output = Result<(), AskError>>>,
    is_durable: watch::Sender<bool>,
) -> String {
    if !*is_durable.borrow() {
        if joined.await.is_err() {
            return STOPPING.to_owned();
        }
        is_durable.send_replace(true);
    }
    pending().await
}

/// Ends when nothing arrived for too long.
async fn silence(mut hearing: watch::Receiver<()>, limit: Duration) -> String {
    loop {
        match tokio::time::timeout(limit, hearing.changed()).await {
            Ok(Ok(())) => {}
            // The link has ended, and says why itself.
            Ok(Err(_)) => pending().await,
            Err(_) => return format!("it sent nothing for {}", Span::from(limit)),
        }
    }
}

/// Sends the driver's orders; ends when the worker does not take them.
async fn pass_on(mut waiting: Mailbox<WorkerSessionMessage>, worker: WorkerOrders) -> String {
    while let Some(first) = waiting.receive().await {
        let orders = gather(first, &mut waiting, &worker);
        if orders.is_empty() {
            continue;
        }
        if let Err(error) = worker.order(context_for(ORDER_LIMIT), orders).await {
            return format!("it did not accept its orders: {error}");
        }
    }
    DROPPED_BY_HEAD.to_owned()
}

/// The waiting orders, as many as fit one message. Logs are read by calls of their own.
fn gather(
    first: WorkerSessionMessage,
    waiting: &mut Mailbox<WorkerSessionMessage>,
    worker: &WorkerOrders,
) -> Vec<Order> {
    let (mut orders, mut weight, mut next) = (Vec::new(), 0, Some(first));
    while let Some(message) = next {
        match message {
            WorkerSessionMessage::ReadLog(request, reply_to) => {
                let worker = worker.clone();
                tokio::spawn(async move { reply_to.send(read_log(worker, request).await) });
            }
            WorkerSessionMessage::ReadMetrics(rank, reply_to) => {
                let worker = worker.clone();
                tokio::spawn(async move { reply_to.send(read_metrics(worker, rank).await) });
            }
            WorkerSessionMessage::WriteInput(piece, reply_to) => {
                let worker = worker.clone();
                tokio::spawn(async move { reply_to.send(write_input(worker, piece).await) });
            }
            WorkerSessionMessage::StartExec(request, reply_to) => {
                let worker = worker.clone();
                tokio::spawn(async move { reply_to.send(start_exec(worker, request).await) });
            }
            WorkerSessionMessage::ReadExec(read, reply_to) => {
                let worker = worker.clone();
                tokio::spawn(async move { reply_to.send(read_exec(worker, read).await) });
            }
            WorkerSessionMessage::EndExec(id, reply_to) => {
                let worker = worker.clone();
                tokio::spawn(async move { reply_to.send(end_exec(worker, id).await) });
            }
            WorkerSessionMessage::OpenForward(request, reply_to) => {
                let worker = worker.clone();
                tokio::spawn(async move { reply_to.send(open_forward(worker, request).await) });
            }
            WorkerSessionMessage::ReadForward(read, reply_to) => {
                let worker = worker.clone();
                tokio::spawn(async move { reply_to.send(read_forward(worker, read).await) });
            }
            WorkerSessionMessage::WriteForward(piece, reply_to) => {
                let worker = worker.clone();
                tokio::spawn(async move { reply_to.send(write_forward(worker, piece).await) });
            }
            WorkerSessionMessage::CloseForward(id, reply_to) => {
                let worker = worker.clone();
                tokio::spawn(async move { reply_to.send(close_forward(worker, id).await) });
            }
            WorkerSessionMessage::Copy(message) => {
                tokio::spawn(pass_copy(worker.clone(), message));
            }
            WorkerSessionMessage::ReadCheckpoints(query, reply_to) => {
                let worker = worker.clone();
                tokio::spawn(async move { reply_to.send(read_checkpoints(worker, query).await) });
            }
            WorkerSessionMessage::Order(order) => {
                weight += self::weight(&order);
                orders.push(order);
            }
        }
        let full = orders.len() >= MOST_ORDERS || weight >= MAX_BATCH_BYTES;
        next = if full { None } else { waiting.receive().now_or_never().flatten() };
    }
    orders
}

/// About how many bytes an order is long.
fn weight(order: &Order) -> usize {
    match order {
        Order::Run(run) => 1_024 + run.ranks.len() * 128 + run.spec.weight(),
        Order::Stop { .. } | Order::Withdraw(_) | Order::Acknowledge(_) | Order::Allot { .. } => 64,
    }
}

async fn read_log(worker: WorkerOrders, request: LogRequest) -> Result<cohabit_types::LogChunk, Refusal> {
    let answer = worker.read_log(context_for(LOG_LIMIT), request).await;
    answer.unwrap_or_else(|error| Err(no_answer("log", request.rank, &error)))
}

async fn read_metrics(worker: WorkerOrders, rank: RankId) -> Result<cohabit_types::MetricSeries, Refusal> {
    let answer = worker.read_metrics(context_for(LOG_LIMIT), rank).await;
    answer.unwrap_or_else(|error| Err(no_answer("metrics", rank, &error)))
}

async fn write_input(worker: WorkerOrders, piece: cohabit_types::InputPiece) -> Result<u64, Refusal> {
    let rank = piece.rank;
    let answer = worker.write_input(context_for(LOG_LIMIT), piece).await;
    answer.unwrap_or_else(|error| Err(no_answer("input", rank, &error)))
}

async fn start_exec(worker: WorkerOrders, request: Box<ExecRequest>) -> Result<(), Refusal> {
    let rank = request.id.rank;
    let answer = worker.start_exec(context_for(LOG_LIMIT), request).await;
    answer.unwrap_or_else(|error| Err(no_answer("processes", rank, &error)))
}

async fn read_exec(worker: WorkerOrders, read: ExecRead) -> Result<ExecOutput, Refusal> {
    let answer = worker.read_exec(context_for(LOG_LIMIT), read).await;
    answer.unwrap_or_else(|error| Err(no_answer("processes", read.id.rank, &error)))
}

async fn end_exec(worker: WorkerOrders, id: ExecId) -> Result<(), Refusal> {
    let answer = worker.end_exec(context_for(LOG_LIMIT), id).await;
    answer.unwrap_or_else(|error| Err(no_answer("processes", id.rank, &error)))
}

async fn open_forward(worker: WorkerOrders, request: ForwardRequest) -> Result<(), Refusal> {
    let rank = request.id.rank;
    let answer = worker.open_forward(context_for(LOG_LIMIT), request).await;
    answer.unwrap_or_else(|error| Err(no_answer("connections", rank, &error)))
}

async fn read_forward(worker: WorkerOrders, read: ForwardRead) -> Result<ForwardOutput, Refusal> {
    let rank = read.id.rank;
    let answer = worker.read_forward(context_for(LOG_LIMIT), read).await;
    answer.unwrap_or_else(|error| Err(no_answer("connections", rank, &error)))
}

async fn write_forward(worker: WorkerOrders, piece: ForwardPiece) -> Result<u64, Refusal> {
    let rank = piece.id.rank;
    let answer = worker.write_forward(context_for(LOG_LIMIT), piece).await;
    answer.unwrap_or_else(|error| Err(no_answer("connections", rank, &error)))
}

async fn close_forward(worker: WorkerOrders, id: ForwardId) -> Result<(), Refusal> {
    let rank = id.rank;
    let answer = worker.close_forward(context_for(LOG_LIMIT), id).await;
    answer.unwrap_or_else(|error| Err(no_answer("connections", rank, &error)))
}

async fn pass_copy(worker: WorkerOrders, message: CopyMessage) {
    match message {
        CopyMessage::Start(order, reply_to) => reply_to.send(start_copy(worker, order).await),
        CopyMessage::Read(read, reply_to) => reply_to.send(read_copy(worker, read).await),
        CopyMessage::End(id, reply_to) => reply_to.send(end_copy(worker, id).await),
    }
}

async fn start_copy(worker: WorkerOrders, order: Box<FileCopyOrder>) -> Result<(), Refusal> {
    let rank = order.request.id.rank;
    let answer = worker.start_copy(context_for(LOG_LIMIT), order).await;
    answer.unwrap_or_else(|error| Err(no_answer("files", rank, &error)))
}

async fn read_copy(worker: WorkerOrders, read: CopyRead) -> Result<CopyPiece, Refusal> {
    let answer = worker.read_copy(context_for(LOG_LIMIT), read).await;
    answer.unwrap_or_else(|error| Err(no_answer("files", read.id.rank, &error)))
}

async fn end_copy(worker: WorkerOrders, id: CopyId) -> Result<(), Refusal> {
    let answer = worker.end_copy(context_for(LOG_LIMIT), id).await;
    answer.unwrap_or_else(|error| Err(no_answer("files", id.rank, &error)))
}

async fn read_checkpoints(worker: WorkerOrders, query: CheckpointQuery) -> Result<CheckpointPiece, Refusal> {
    let answer = worker.read_checkpoints(context_for(CHECKPOINT_LIMIT), query).await;
    answer.unwrap_or_else(|error| {
        let message = format!("the worker that keeps the checkpoints did not answer: {error}");
        Err(Refusal::new(RefusalCode::Unavailable, message))
    })
}

fn no_answer(what: &str, rank: RankId, error: &impl Display) -> Refusal {
    let message = format!("the worker that keeps the {what} of {rank} did not answer: {error}");
    Refusal::new(RefusalCode::Unavailable, message)
}

impl Reports {
    fn new(
        key: WorkerKey,
        session_context: Arc<SessionContext>,
        heard: watch::Sender<()>,
        durable: watch::Receiver<bool>,
    ) -> Reports {
        let turn = Arc::new(Mutex::new(Bucket::full(REPORT_RATE, Instant::now())));
        Reports { key, heard, durable, turn, reading: Arc::default(), session_context }
    }
}

impl HeadService for Reports {
    async fn report(mut self, _: Context, reports: Vec<Report>) {
        self.heard.send_replace(());
        // If the session has ended, nothing is passed on.
        if self.durable.wait_for(|durable| *durable).await.is_err() {
            return;
        }
        let mut reports = admit::reports(reports);
        let mut bucket = self.turn.lock().await;
        while !reports.is_empty() {
            let rest = reports.split_off(reports.len().min(MOST_REPORTS));
            let some = std::mem::replace(&mut reports, rest);
            let rows = some.iter().map(admit::rows).sum();
            pause(bucket.charge(rows, REPORT_RATE, Instant::now())).await;
            // Without a driver the head is ending; the worker reports again to the next one.
            let driver = &self.session_context.driver;
            let _ = driver.ask(|handled| Message::Reports(self.key, some, handled)).await;
        }
    }

    async fn heartbeat(self, _: Context) {
        self.heard.send_replace(());
    }

    async fn read_code(self, _: Context, request: CodeRequest) -> Result<ContentPiece, Refusal> {
        let _turn = self.reading.lock().await;
        let (node, job) = (self.key.node, request.job);
        let asked =
            self.session_context.driver.ask(|reply_to| Message::Query(Query::CodeOn(node, job, reply_to)));
        let found = asked.await.map_err(|error| ending(&error))?;
        let (user, snapshot) = found.ok_or_else(|| code::no_snapshot(job))?;
        code::read(&self.session_context, user, snapshot, request).await
    }

    async fn read_checkpoints(
        self,
        _: Context,
        request: CheckpointRequest,
    ) -> Result<CheckpointPiece, Refusal> {
        checkpoints::read(&self.session_context, self.key.node, request).await
    }
}
