//! Links over real sockets on the loopback interface: the head under test, and the words to test it in.

mod answers;
mod hostile;
mod logs;
mod node_claims;
mod refusals;
mod revocation;
mod versions;

use std::time::{Duration, Instant};

use cohabit_types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, ApplicationQuestion, ApplicationRecord, Bytes,
    ChangeResult, CheckpointPiece, CheckpointQuery, CheckpointRequest, CodeRequest, ContentHash,
    ContentPiece, CopyId, CopyPiece, CopyRead, CopyRequest, DrainRequest, DryRun, ExecId, ExecOutput,
    ExecRead, ExecRequest, Explanation, Feed, FeedCursor, Figures, FileCopyOrder, Filter, FollowMode,
    ForwardId, ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest, HeadStatus, Incarnation, InputPiece,
    Inventory, Isolation, IssuedToken, JobChange, JobId, JobRecord, JobRef, JobRevision, JobSettings,
    JobSpec, JobUpdates, LinkBandwidths, ListPage, LogChunk, LogPosition, LogRequest, MetricSeries,
    ModelChoice, Models, NewToken, NodeId, NodeRecord, NodeReservation, ObjectListing, Order, RankId,
    Refusal, RefusalCode, RefusedWorker, Report, ReservationRequest, Role, ShareReport, ShareTable,
    SharingLimits, Span, SubmitReceipt, TaskListing, TokenRecord, UpdateCursor, UsageRecord, UsageReport,
    UsageReportRequest, WorkerKey,
};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::{
    ClientService, ClientServiceClient, Context, Endpoint, HeadIdentity, HeadService, Incoming, LinkEnd,
    Listener, ListenerLimits, NodeCredentials, Secret, TokenStore, WorkerHello, WorkerLink, WorkerService,
    WorkerSession, clock, connect_client, connect_worker,
};

/// Nothing here takes as long as this; a test that waits in vain fails by it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A head that answers whoever it lets in.
struct TestHead {
    address: String,
    tokens: TokenStore,
    nodes: NodeCredentials,
    workers: mpsc::UnboundedReceiver<WorkerSession>,
    reports: mpsc::UnboundedReceiver<Vec<Report>>,
    orders: (mpsc::UnboundedSender<Vec<Order>>, mpsc::UnboundedReceiver<Vec<Order>>),
    ends: mpsc::UnboundedReceiver<LinkEnd>,
    state: TempDir,
}

impl TestHead {
    async fn start() -> TestHead {
        TestHead::start_within(ListenerLimits::default()).await
    }

    async fn start_within(limits: ListenerLimits) -> TestHead {
        TestHead::start_in(tempfile::tempdir().unwrap(), limits).await
    }

    /// The same with what is in this directory.
    async fn start_in(state: TempDir, limits: ListenerLimits) -> TestHead {
        let identity = HeadIdentity::open_or_create(state.path()).unwrap();
        let tokens = TokenStore::open(&state.path().join("tokens.json"), identity.fingerprint()).unwrap();
        let nodes = NodeCredentials::open(&state.path().join("node-credentials.json")).unwrap();
        let listener = Listener::bind_within("127.0.0.1:0", &identity, tokens.clone(), limits).await.unwrap();
        let address = listener.local_addr().to_string();
        let (to_workers, workers) = mpsc::unbounded_channel();
        let (to_reports, reports) = mpsc::unbounded_channel();
        let (to_ends, ends) = mpsc::unbounded_channel();
        tokio::spawn(accept_all(listener, Head(to_reports), nodes.clone(), to_workers, to_ends));
        let orders = mpsc::unbounded_channel();
        TestHead { address, tokens, nodes, workers, reports, orders, ends, state }
    }

    /// A new token, for ever or for a while.
    fn endpoint(&self, name: &str, role: Role, expires_in: Option<Span>) -> Endpoint {
        let token = self.tokens.create(name, role, expires_in, clock::now()).unwrap();
        Endpoint { address: self.address.clone(), token }
    }

    async fn client(&self, name: &str) -> ClientServiceClient {
        let (client, accepted) = connect_client(&self.endpoint(name, Role::User, None)).await.unwrap();
        assert_eq!((accepted.by.user.as_str(), accepted.by.role), (name, Role::User));
        client
    }

    /// Both ends of a worker's link.
    async fn worker(&mut self, name: &str) -> (WorkerLink, WorkerSession) {
        let endpoint = self.endpoint(name, Role::Worker, None);
        let link = connect_worker(&endpoint, hello(), self.worker_service()).await.unwrap();
        (link, in_time(self.workers.recv()).await.unwrap())
    }

    fn worker_service(&self) -> Worker {
        Worker(self.orders.0.clone())
    }

    /// How the next client's link ended, seen from the head.
    async fn next_end(&mut self) -> LinkEnd {
        in_time(self.ends.recv()).await.unwrap()
    }

    /// That it lives, and serves somebody new.
    async fn assert_serves(&self, name: &str) {
        in_time(self.client(name)).await.ping(tarpc::context::current()).await.unwrap();
    }
}

async fn accept_all(
    mut listener: Listener,
    head: Head,
    nodes: NodeCredentials,
    workers: mpsc::UnboundedSender<WorkerSession>,
    ends: mpsc::UnboundedSender<LinkEnd>,
) {
    loop {
        match listener.accept().await {
            Incoming::Client(peer) => {
                let (ends, user) = (ends.clone(), peer.by().user.clone());
                tokio::spawn(async move { ends.send(peer.serve(ClientHandler { user }).await) });
            }
            Incoming::Worker(peer) => {
                assert_eq!(peer.key().incarnation, hello().key.incarnation);
                assert_eq!(peer.inventory().rendezvous_ports, hello().inventory.rendezvous_ports);
                if let Err(error) = nodes.admit(&peer, clock::now()) {
                    peer.refuse(error.code(), error.to_string()).await;
                    continue;
                }
                let _nobody_asks = workers.send(peer.start_session(head.clone()).await);
            }
        }
    }
}

async fn in_time<T>(awaited: impl Future<Output = T>) -> T {
    timeout(PATIENCE, awaited).await.expect("it comes in time")
}

/// A first frame as a version that nobody here serves would send it.
fn of_another_version(version: u32, build: &str) -> tokio_util::bytes::Bytes {
    cohabit_wire::hello::envelope(version, build, b"a body that nobody here can read")
}

/// A context whose deadline is not what a test is about.
fn patient() -> Context {
    crate::context_for(PATIENCE.into())
}

fn hello() -> WorkerHello {
    let inventory = Inventory {
        name: "node-a".into(),
        address: "127.0.0.1".into(),
        cpus: 8,
        memory: Bytes(16 << 30),
        devices: Vec::new(),
        build: "0.1.0".into(),
        links: LinkBandwidths::default(),
        sharing: SharingLimits::default(),
        max_jobs: None,
        rendezvous_ports: vec![29_600],
        isolation: Isolation::default(),
        fetches_code: false,
        prefetches: false,
        application_ports: false,
        changes_host_shares: false,
        orphan_grace: Span::from_secs(120),
        held_ranks: Vec::new(),
    };
    WorkerHello {
        key: WorkerKey { node: NodeId(uuid::Uuid::from_u128(7)), incarnation: Incarnation(3) },
        credential: Some(Secret::new([9; Secret::LENGTH])),
        inventory,
    }
}

fn log_request(at: u64) -> LogRequest {
    LogRequest {
        rank: JobId::new(1).attempt(1).rank(0),
        from: LogPosition::At(at),
        at_end: FollowMode::Return,
    }
}

/// What clients meet.
#[derive(Clone)]
struct ClientHandler {
    user: String,
}

impl ClientService for ClientHandler {
    /// Nodes named `panic` make it panic.
    async fn update_jobs(
        self,
        _: Context,
        _: JobSettings,
        _: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        Err(unasked())
    }

    async fn drain_node(self, _: Context, drain: DrainRequest) -> Result<String, Refusal> {
        assert!(drain.node != "panic", "on purpose, by a test");
        Ok(drain.node)
    }

    /// Explains who asks and how much time there is; job 2 has an explanation that is long, job 3 one that is
    /// too long for a frame.
    async fn explain(self, context: Context, job: JobId) -> Result<Explanation, Refusal> {
        let left = context.deadline.saturating_duration_since(Instant::now()).as_secs();
        let sentences = match job.number {
            2 => vec!["x".repeat(1 << 20)],
            3 => vec!["x".repeat(9 << 20)],
            _ => vec![self.user, left.to_string()],
        };
        Ok(Explanation { sentences, history: Vec::new() })
    }

    async fn applications(self, _: Context, _: ApplicationOwner) -> Result<Vec<ApplicationRecord>, Refusal> {
        Err(unasked())
    }

    async fn actors(self, _: Context, _: JobId) -> Result<ActorListing, Refusal> {
        Err(unasked())
    }

    async fn tasks(self, _: Context, _: JobId) -> Result<TaskListing, Refusal> {
        Err(unasked())
    }

    async fn objects(self, _: Context, _: JobId) -> Result<ObjectListing, Refusal> {
        Err(unasked())
    }

    async fn questions(self, _: Context) -> Result<Vec<ApplicationQuestion>, Refusal> {
        Err(unasked())
    }

    async fn answer_question(self, _: Context, _: u64, _: Box<ApplicationAnswer>) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn missing_content(self, _: Context, _: Vec<ContentHash>) -> Result<Vec<ContentHash>, Refusal> {
        Err(unasked())
    }

    async fn put_content(self, _: Context, _: Vec<ContentPiece>) -> Result<Vec<u64>, Refusal> {
        Err(unasked())
    }

    async fn read_code(self, _: Context, _: CodeRequest) -> Result<ContentPiece, Refusal> {
        Err(unasked())
    }

    /// Never ends.
    async fn watch(self, _: Context, _: Vec<JobRevision>) -> Result<Vec<JobRecord>, Refusal> {
        std::future::pending().await
    }

    async fn read_log(self, _: Context, request: LogRequest) -> Result<LogChunk, Refusal> {
        Ok(chunk(request))
    }

    async fn list_tokens(self, _: Context) -> Result<Vec<TokenRecord>, Refusal> {
        Err(Refusal::new(RefusalCode::NotAllowed, "only for admins"))
    }

    async fn ping(self, _: Context) {}

    async fn own_token(self, _: Context) -> Result<TokenRecord, Refusal> {
        Err(unasked())
    }

    async fn head_status(self, _: Context) -> Result<HeadStatus, Refusal> {
        Err(unasked())
    }

    async fn head_problems(self, _: Context) -> Result<Vec<String>, Refusal> {
        Err(unasked())
    }

    async fn job_updates(self, _: Context, _: Option<UpdateCursor>) -> Result<JobUpdates, Refusal> {
        Err(unasked())
    }

    async fn feed(self, _: Context, _: Option<FeedCursor>) -> Result<Feed, Refusal> {
        Err(unasked())
    }

    async fn shares(self, _: Context) -> Result<Box<ShareReport>, Refusal> {
        Err(unasked())
    }

    async fn apply_shares(self, _: Context, _: Box<ShareTable>, _: bool) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn reserve(self, _: Context, _: Box<ReservationRequest>) -> Result<Box<NodeReservation>, Refusal> {
        Err(unasked())
    }

    async fn cancel_reservation(self, _: Context, _: u64) -> Result<Box<NodeReservation>, Refusal> {
        Err(unasked())
    }

    async fn reservations(self, _: Context) -> Result<Vec<NodeReservation>, Refusal> {
        Err(unasked())
    }

    async fn figures(self, _: Context) -> Result<Box<Figures>, Refusal> {
        Err(unasked())
    }

    async fn usage_report(self, _: Context, _: UsageReportRequest) -> Result<Box<UsageReport>, Refusal> {
        Err(unasked())
    }

    async fn usage(self, _: Context, _: Vec<JobId>) -> Result<Vec<UsageRecord>, Refusal> {
        Err(unasked())
    }

    async fn start_exec(self, _: Context, _: Box<ExecRequest>) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn read_exec(self, _: Context, _: ExecRead) -> Result<ExecOutput, Refusal> {
        Err(unasked())
    }

    async fn end_exec(self, _: Context, _: ExecId) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn open_forward(self, _: Context, _: ForwardRequest) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn read_forward(self, _: Context, _: ForwardRead) -> Result<ForwardOutput, Refusal> {
        Err(unasked())
    }

    async fn write_forward(self, _: Context, _: ForwardPiece) -> Result<u64, Refusal> {
        Err(unasked())
    }

    async fn close_forward(self, _: Context, _: ForwardId) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn start_copy(self, _: Context, _: Box<CopyRequest>) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn read_copy(self, _: Context, _: CopyRead) -> Result<CopyPiece, Refusal> {
        Err(unasked())
    }

    async fn end_copy(self, _: Context, _: CopyId) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn write_input(self, _: Context, _: InputPiece) -> Result<u64, Refusal> {
        Err(unasked())
    }

    async fn read_metrics(self, _: Context, _: RankId) -> Result<MetricSeries, Refusal> {
        Err(unasked())
    }

    async fn submit(self, _: Context, _: Box<JobSpec>, _: Option<String>) -> Result<SubmitReceipt, Refusal> {
        Err(unasked())
    }

    async fn change_jobs(
        self,
        _: Context,
        _: JobChange,
        _: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        Err(unasked())
    }

    async fn resume_node(self, _: Context, _: String) -> Result<String, Refusal> {
        Err(unasked())
    }

    async fn unbind_node(self, _: Context, _: String) -> Result<String, Refusal> {
        Err(unasked())
    }

    async fn refused_workers(self, _: Context) -> Result<Vec<RefusedWorker>, Refusal> {
        Err(unasked())
    }

    async fn resolve(self, _: Context, _: Vec<JobRef>) -> Result<Vec<JobId>, Refusal> {
        Err(unasked())
    }

    async fn list(self, _: Context, _: Filter) -> Result<ListPage, Refusal> {
        Err(unasked())
    }

    async fn show(self, _: Context, _: Vec<JobId>) -> Result<Vec<JobRecord>, Refusal> {
        Err(unasked())
    }

    async fn dry_run(self, _: Context, _: Box<JobSpec>) -> Result<Box<DryRun>, Refusal> {
        Err(unasked())
    }

    async fn nodes(self, _: Context) -> Result<Vec<NodeRecord>, Refusal> {
        Err(unasked())
    }

    async fn create_token(self, _: Context, _: NewToken) -> Result<IssuedToken, Refusal> {
        Err(unasked())
    }

    async fn revoke_token(self, _: Context, _: String) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn list_models(self, _: Context) -> Result<Models, Refusal> {
        Err(unasked())
    }

    async fn choose_model(self, _: Context, _: ModelChoice) -> Result<Models, Refusal> {
        Err(unasked())
    }
}

/// What workers meet: it passes on what they report.
#[derive(Clone)]
struct Head(mpsc::UnboundedSender<Vec<Report>>);

impl HeadService for Head {
    async fn report(self, _: Context, reports: Vec<Report>) {
        self.0.send(reports).unwrap();
    }

    async fn heartbeat(self, _: Context) {}

    async fn read_code(self, _: Context, _: CodeRequest) -> Result<ContentPiece, Refusal> {
        Err(unasked())
    }

    async fn read_checkpoints(self, _: Context, _: CheckpointRequest) -> Result<CheckpointPiece, Refusal> {
        Err(unasked())
    }
}

/// What the head meets at a worker: it passes on what it is ordered.
#[derive(Clone)]
struct Worker(mpsc::UnboundedSender<Vec<Order>>);

impl WorkerService for Worker {
    async fn order(self, _: Context, orders: Vec<Order>) {
        self.0.send(orders).unwrap();
    }

    async fn read_log(self, _: Context, request: LogRequest) -> Result<LogChunk, Refusal> {
        Ok(chunk(request))
    }

    async fn read_metrics(self, _: Context, _: RankId) -> Result<MetricSeries, Refusal> {
        Err(unasked())
    }

    async fn start_exec(self, _: Context, _: Box<ExecRequest>) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn read_exec(self, _: Context, _: ExecRead) -> Result<ExecOutput, Refusal> {
        Err(unasked())
    }

    async fn end_exec(self, _: Context, _: ExecId) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn open_forward(self, _: Context, _: ForwardRequest) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn read_forward(self, _: Context, _: ForwardRead) -> Result<ForwardOutput, Refusal> {
        Err(unasked())
    }

    async fn write_forward(self, _: Context, _: ForwardPiece) -> Result<u64, Refusal> {
        Err(unasked())
    }

    async fn close_forward(self, _: Context, _: ForwardId) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn start_copy(self, _: Context, _: Box<FileCopyOrder>) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn read_copy(self, _: Context, _: CopyRead) -> Result<CopyPiece, Refusal> {
        Err(unasked())
    }

    async fn end_copy(self, _: Context, _: CopyId) -> Result<(), Refusal> {
        Err(unasked())
    }

    async fn write_input(self, _: Context, _: InputPiece) -> Result<u64, Refusal> {
        Err(unasked())
    }

    async fn read_checkpoints(self, _: Context, _: CheckpointQuery) -> Result<CheckpointPiece, Refusal> {
        Err(unasked())
    }
}

fn unasked() -> Refusal {
    Refusal::new(RefusalCode::Invalid, "no test asks this")
}

/// A piece that shows which position was asked for.
fn chunk(request: LogRequest) -> LogChunk {
    let LogPosition::At(at) = request.from else { panic!("tests ask by position") };
    LogChunk { next: at + 1, ..LogChunk::default() }
}
