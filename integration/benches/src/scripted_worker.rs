//! A scripted worker: a real link, and ranks that end as soon as they start, or never.

use std::time::{Duration, Instant};

use cohabit_net::{
    Context, WorkerHello, WorkerLink, WorkerReports, WorkerService, connect_worker, context_for,
};
use cohabit_types::{
    Bytes, CheckpointPiece, CheckpointQuery, CopyId, CopyPiece, CopyRead, Device, DeviceId, DeviceKind,
    ExecId, ExecOutput, ExecRead, ExecRequest, FileCopyOrder, ForwardId, ForwardOutput, ForwardPiece,
    ForwardRead, ForwardRequest, Incarnation, InputPiece, Inventory, Isolation, LinkBandwidths, LogChunk,
    LogRequest, MetricSeries, NodeId, Order, Outcome, RankId, Refusal, RefusalCode, Report, RunOrder,
    SharingLimits, Span, Time, WorkerKey,
};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::daemon::HeadProcess;

/// Time limit of a call.
const LIMIT: Span = Span::from_secs(60);

/// The heartbeat interval of a worker.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A worker's link, and the orders that arrived over it.
pub(crate) struct ScriptedWorker {
    link: WorkerLink,
    orders: mpsc::UnboundedReceiver<ReceivedOrder>,
}

/// An order and its time of arrival.
pub(crate) struct ReceivedOrder {
    pub(crate) at: Instant,
    pub(crate) order: Order,
}

impl ScriptedWorker {
    /// Joins as the machine of this number with this many host slots.
    pub(crate) async fn join(head: &HeadProcess, number: u64, slots: usize) -> ScriptedWorker {
        let key =
            WorkerKey { node: NodeId(Uuid::from_u128(number.into())), incarnation: Incarnation(number + 1) };
        let hello = WorkerHello { key, credential: None, inventory: inventory(number, slots) };
        let (tell, orders) = mpsc::unbounded_channel();
        let link = connect_worker(&head.endpoint("worker.token"), hello, OrderForwarder(tell)).await.unwrap();
        tokio::spawn(beat(link.head.clone()));
        ScriptedWorker { link, orders }
    }

    pub(crate) fn head(&self) -> &WorkerReports {
        &self.link.head
    }

    /// Waits for the next order to run ranks.
    pub(crate) async fn next_run(&mut self) -> (Instant, RunOrder) {
        loop {
            let ReceivedOrder { at, order } = self.orders.recv().await.expect("the link is there");
            if let Order::Run(run) = order {
                return (at, *run);
            }
        }
    }

    /// Waits for at least one order. Returns all that arrived since the last call.
    pub(crate) async fn next_orders(&mut self) -> Vec<ReceivedOrder> {
        let mut orders = Vec::new();
        self.orders.recv_many(&mut orders, 1_024).await;
        assert!(!orders.is_empty(), "the link is there");
        orders
    }

    /// Ends every rank as soon as it starts, until this many have ended.
    pub(crate) async fn run_through(&mut self, mut ranks: usize) {
        while ranks > 0 {
            let orders = self.next_orders().await;
            let begun: Vec<RankId> = orders.iter().flat_map(|it| ranks_of(&it.order)).collect();
            ranks = ranks.saturating_sub(begun.len());
            let reports = begun.into_iter().flat_map(|rank| [started(rank), ended(rank)]);
            self.report(reports.collect()).await;
        }
    }

    pub(crate) async fn report(&self, reports: Vec<Report>) {
        if !reports.is_empty() {
            self.head().report(context_for(LIMIT), reports).await.unwrap();
        }
    }
}

/// Sends heartbeats; a head disconnects a worker that is silent for too long.
async fn beat(head: WorkerReports) {
    while head.heartbeat(context_for(LIMIT)).await.is_ok() {
        tokio::time::sleep(HEARTBEAT).await;
    }
}

/// The ranks that an order starts.
pub(crate) fn ranks_of(order: &Order) -> Vec<RankId> {
    match order {
        Order::Run(run) => run.ranks.iter().map(|rank| run.attempt.rank(rank.rank)).collect(),
        Order::Stop { .. } | Order::Withdraw(_) | Order::Acknowledge(_) | Order::Allot { .. } => Vec::new(),
    }
}

pub(crate) fn started(rank: RankId) -> Report {
    Report::Started { rank, at: Time::EPOCH }
}

pub(crate) fn ended(rank: RankId) -> Report {
    Report::Ended {
        rank,
        outcome: Outcome::Exited(0),
        stopped: None,
        progress: None,
        at: Time::EPOCH,
        usage: Vec::new(),
    }
}

fn inventory(number: u64, slots: usize) -> Inventory {
    let slot = |n| Device::new(DeviceId(format!("host-{n}").into()), DeviceKind::Host, "host slot", None);
    Inventory {
        fetches_code: true,
        prefetches: false,
        application_ports: true,
        changes_host_shares: true,
        name: format!("node{number}"),
        address: "127.0.0.1".to_owned(),
        cpus: 64,
        memory: Bytes(64 << 30),
        devices: (0..slots).map(slot).collect(),
        build: "bench".to_owned(),
        links: LinkBandwidths::default(),
        sharing: SharingLimits::default(),
        isolation: Isolation::default(),
        max_jobs: None,
        rendezvous_ports: vec![29_601],
        orphan_grace: Span::from_secs(120),
        held_ranks: Vec::new(),
    }
}

#[derive(Clone)]
struct OrderForwarder(mpsc::UnboundedSender<ReceivedOrder>);

impl WorkerService for OrderForwarder {
    async fn order(self, _: Context, orders: Vec<Order>) {
        let at = Instant::now();
        orders.into_iter().for_each(|order| drop(self.0.send(ReceivedOrder { at, order })));
    }

    async fn read_log(self, _: Context, _: LogRequest) -> Result<LogChunk, Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker keeps no logs"))
    }

    async fn read_metrics(self, _: Context, _: RankId) -> Result<MetricSeries, Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker keeps no metrics"))
    }

    async fn start_exec(self, _: Context, _: Box<ExecRequest>) -> Result<(), Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker starts no processes"))
    }

    async fn read_exec(self, _: Context, _: ExecRead) -> Result<ExecOutput, Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker starts no processes"))
    }

    async fn end_exec(self, _: Context, _: ExecId) -> Result<(), Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker starts no processes"))
    }

    async fn open_forward(self, _: Context, _: ForwardRequest) -> Result<(), Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker has no ports"))
    }

    async fn read_forward(self, _: Context, _: ForwardRead) -> Result<ForwardOutput, Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker has no ports"))
    }

    async fn write_forward(self, _: Context, _: ForwardPiece) -> Result<u64, Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker has no ports"))
    }

    async fn close_forward(self, _: Context, _: ForwardId) -> Result<(), Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker has no ports"))
    }

    async fn start_copy(self, _: Context, _: Box<FileCopyOrder>) -> Result<(), Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker has no files"))
    }

    async fn read_copy(self, _: Context, _: CopyRead) -> Result<CopyPiece, Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker has no files"))
    }

    async fn end_copy(self, _: Context, _: CopyId) -> Result<(), Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker has no files"))
    }

    async fn write_input(self, _: Context, _: InputPiece) -> Result<u64, Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker takes no input"))
    }

    async fn read_checkpoints(self, _: Context, _: CheckpointQuery) -> Result<CheckpointPiece, Refusal> {
        Err(Refusal::new(RefusalCode::NotFound, "a played worker keeps no checkpoints"))
    }
}
