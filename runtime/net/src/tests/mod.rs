//! Links over real sockets on the loopback interface: the head under test, and the words to test it in.

mod answers;
mod hostile;
mod logs;
mod refusals;
mod revocation;

use std::time::{Duration, Instant};

use cohabit_types::{
    Answer, Bytes, FollowMode, Incarnation, Inventory, Isolation, JobId, LinkBandwidths, LogChunk,
    LogPosition, LogRequest, ModelRequest, Models, NodeId, Order, Query, Refusal, RefusalCode, Reply, Report,
    Request, Role, SharingLimits, Span, TokenAnswer, TokenRequest, WorkerKey,
};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::{
    ClientService, ClientServiceClient, Context, Endpoint, HeadIdentity, HeadService, Incoming, LinkEnd,
    Listener, ListenerLimits, TokenStore, WorkerHello, WorkerLink, WorkerService, WorkerSession, clock,
    connect_client, connect_worker,
};

/// Nothing here takes as long as this; a test that waits in vain fails by it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A head that answers whoever it lets in.
struct TestHead {
    address: String,
    tokens: TokenStore,
    workers: mpsc::UnboundedReceiver<WorkerSession>,
    reports: mpsc::UnboundedReceiver<Vec<Report>>,
    orders: (mpsc::UnboundedSender<Vec<Order>>, mpsc::UnboundedReceiver<Vec<Order>>),
    ends: mpsc::UnboundedReceiver<LinkEnd>,
    _state: TempDir,
}

impl TestHead {
    async fn start() -> TestHead {
        TestHead::start_within(ListenerLimits::default()).await
    }

    async fn start_within(limits: ListenerLimits) -> TestHead {
        let state = tempfile::tempdir().unwrap();
        let identity = HeadIdentity::open_or_create(state.path()).unwrap();
        let tokens = TokenStore::open(&state.path().join("tokens.json"), identity.fingerprint()).unwrap();
        let listener = Listener::bind_within("127.0.0.1:0", &identity, tokens.clone(), limits).await.unwrap();
        let address = listener.local_addr().to_string();
        let (to_workers, workers) = mpsc::unbounded_channel();
        let (to_reports, reports) = mpsc::unbounded_channel();
        let (to_ends, ends) = mpsc::unbounded_channel();
        tokio::spawn(accept_all(listener, Head(to_reports), to_workers, to_ends));
        let orders = mpsc::unbounded_channel();
        TestHead { address, tokens, workers, reports, orders, ends, _state: state }
    }

    /// A new token, for ever or for a while.
    fn endpoint(&self, name: &str, role: Role, expires_in: Option<Span>) -> Endpoint {
        let token = self.tokens.create(name, role, expires_in, clock::now()).unwrap();
        Endpoint { address: self.address.clone(), token }
    }

    async fn client(&self, name: &str) -> ClientServiceClient {
        let (client, welcome) = connect_client(&self.endpoint(name, Role::User, None)).await.unwrap();
        assert_eq!((welcome.by.user.as_str(), welcome.by.role), (name, Role::User));
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
                assert_eq!((peer.key(), peer.inventory()), (hello().key, &hello().inventory));
                let _nobody_asks = workers.send(peer.welcome(head.clone()).await);
            }
        }
    }
}

async fn in_time<T>(awaited: impl Future<Output = T>) -> T {
    timeout(PATIENCE, awaited).await.expect("it comes in time")
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
        rendezvous_ports: vec![29_600],
        isolation: Isolation::default(),
        orphan_grace: Span::from_secs(120),
        held: Vec::new(),
    };
    WorkerHello {
        key: WorkerKey { node: NodeId(uuid::Uuid::from_u128(7)), incarnation: Incarnation(3) },
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
    async fn request(self, _: Context, request: Request) -> Result<Reply, Refusal> {
        match request {
            Request::Drain(node) if node == "panic" => panic!("on purpose, by a test"),
            Request::Drain(node) => Ok(Reply::Node(node)),
            Request::Submit(_) | Request::Change(..) | Request::Resume(_) => Err(unasked()),
        }
    }

    /// Explains who asks and how much time there is; a job shown is long, a list of nodes
    /// too long for a frame, a watch never ends.
    async fn query(self, context: Context, query: Query) -> Result<Answer, Refusal> {
        match query {
            Query::Explain(_) => {
                let left = context.deadline.saturating_duration_since(Instant::now()).as_secs();
                Ok(Answer::Explained { sentences: vec![self.user, left.to_string()], story: Vec::new() })
            }
            Query::Nodes => Ok(Answer::Explained { sentences: vec!["x".repeat(9 << 20)], story: Vec::new() }),
            Query::Show(_) => {
                Ok(Answer::Explained { sentences: vec!["x".repeat(1 << 20)], story: Vec::new() })
            }
            Query::Watch(_) => std::future::pending().await,
            Query::Resolve(_) | Query::List(_) | Query::Consider(_) => Err(unasked()),
        }
    }

    async fn read_log(self, _: Context, request: LogRequest) -> Result<LogChunk, Refusal> {
        Ok(chunk(request))
    }

    async fn token(self, _: Context, _: TokenRequest) -> Result<TokenAnswer, Refusal> {
        Err(Refusal::new(RefusalCode::NotAllowed, "only for admins"))
    }

    async fn models(self, _: Context, _: ModelRequest) -> Result<Models, Refusal> {
        Err(unasked())
    }

    async fn ping(self, _: Context) {}
}

/// What workers meet: it passes on what they report.
#[derive(Clone)]
struct Head(mpsc::UnboundedSender<Vec<Report>>);

impl HeadService for Head {
    async fn report(self, _: Context, reports: Vec<Report>) {
        self.0.send(reports).unwrap();
    }

    async fn heartbeat(self, _: Context) {}
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
}

fn unasked() -> Refusal {
    Refusal::new(RefusalCode::Invalid, "no test asks this")
}

/// A piece that shows which position was asked for.
fn chunk(request: LogRequest) -> LogChunk {
    let LogPosition::At(at) = request.from else { panic!("tests ask by position") };
    LogChunk { next: at + 1, ..LogChunk::default() }
}
