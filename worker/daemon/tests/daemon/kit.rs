//! A real daemon with real executors, and a fake head that sends orders and receives reports.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cohabit_net::{
    Context, HeadIdentity, HeadService, Incoming, Listener, Token, TokenStore, WorkerSession, context_for,
};
use cohabit_store::{ContentError, ContentStore, StoreKind, StoreLimits};
use cohabit_types::{
    Bytes, CheckpointPiece, CheckpointRequest, CodeRequest, ContentPiece, CopyId, CopyPiece, CopyRead,
    DeviceId, ExecId, ExecOutput, ExecRead, ExecRequest, FileCopyOrder, FollowMode, HeldRank, InputPiece,
    Inventory, JobId, JobSpec, LogChunk, LogPosition, LogRequest, Order, Outcome, Progress, RankId, RankRun,
    Refusal, RefusalCode, Rendezvous, Report, Role, RunOrder, Share, Span, StopReason, Time, WorkerKey,
};
use cohabit_worker_daemon::{DeviceSpec, ExecutorProgram, WorkerDaemon, WorkerOptions};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

/// Far more time than anything here takes; reaching it is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a future that must complete.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("still waiting for {what}"))
}

/// Waits for a condition.
pub(crate) async fn wait_for(what: &str, mut look: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !look() {
        assert!(Instant::now() < deadline, "still waiting for {what}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// A head, and the state directory of one worker.
pub(crate) struct Cluster {
    folder: TempDir,
    listener: Listener,
    tokens: TokenStore,
    names: u32,
    /// What the head stores, and how often a piece of it was read.
    pub(crate) code: Arc<ContentStore>,
    pieces: Arc<AtomicUsize>,
    /// The archive of checkpoints that another worker would have; it is away without one.
    pub(crate) checkpoints: Arc<Mutex<Option<Vec<u8>>>>,
}

/// A worker's link, as the head sees it.
pub(crate) struct Joined {
    pub(crate) key: WorkerKey,
    pub(crate) inventory: Inventory,
    pub(crate) session: WorkerSession,
    reports: mpsc::UnboundedReceiver<Report>,
    /// Whether the head answers calls that report.
    pub(crate) takes_reports: watch::Sender<bool>,
    /// The number of heartbeats received.
    pub(crate) heartbeats: watch::Receiver<u64>,
}

/// How a rank ended, as reported to the head.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    pub(crate) stopped: Option<StopReason>,
    pub(crate) progress: Option<Progress>,
}

#[derive(Clone)]
struct Ear {
    heard: mpsc::UnboundedSender<Report>,
    takes: watch::Receiver<bool>,
    heartbeats: watch::Sender<u64>,
    code: Arc<ContentStore>,
    pieces: Arc<AtomicUsize>,
    checkpoints: Arc<Mutex<Option<Vec<u8>>>>,
}

impl HeadService for Ear {
    async fn report(mut self, _: Context, reports: Vec<Report>) {
        reports.into_iter().for_each(|report| drop(self.heard.send(report)));
        let _ = self.takes.wait_for(|takes| *takes).await;
    }

    async fn heartbeat(self, _: Context) {
        self.heartbeats.send_modify(|count| *count += 1);
    }

    async fn read_code(self, _: Context, request: CodeRequest) -> Result<ContentPiece, Refusal> {
        self.pieces.fetch_add(1, Ordering::SeqCst);
        let refused = |error: ContentError| Refusal::new(RefusalCode::NotFound, error.to_string());
        self.code.read(&request.file, request.offset).map_err(refused)
    }

    /// A few bytes at a time of what this test has put there.
    async fn read_checkpoints(
        self,
        _: Context,
        request: CheckpointRequest,
    ) -> Result<CheckpointPiece, Refusal> {
        let Some(archive) = self.checkpoints.lock().unwrap().clone() else {
            return Err(Refusal::new(RefusalCode::Unavailable, "node den is not connected"));
        };
        let (size, offset) = (archive.len() as u64, request.offset);
        let bytes = archive.into_iter().skip(offset as usize).take(1 << 12).collect();
        Ok(CheckpointPiece { size, offset, lacks_earlier: false, bytes })
    }
}

impl Cluster {
    pub(crate) async fn new() -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let identity = HeadIdentity::open_or_create(&folder.path().join("head")).unwrap();
        let tokens =
            TokenStore::open(&folder.path().join("head/tokens.json"), identity.fingerprint()).unwrap();
        let listener = Listener::bind("127.0.0.1:0", &identity, tokens.clone()).await.unwrap();
        let limits = StoreLimits { bytes: Bytes(64 << 20), files: 100 };
        let code = ContentStore::open(&folder.path().join("head/code"), StoreKind::Durable, limits).unwrap();
        Cluster {
            folder,
            listener,
            tokens,
            names: 0,
            code: code.into(),
            pieces: Arc::default(),
            checkpoints: Arc::default(),
        }
    }

    /// How often a worker has read a piece of code.
    pub(crate) fn pieces_read(&self) -> usize {
        self.pieces.load(Ordering::SeqCst)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("worker")
    }

    /// Waits until no daemon holds the state directory.
    pub(crate) async fn abandoned(&self) {
        let lock = std::fs::File::open(self.state().join("lock")).unwrap();
        wait_for("the end of the daemon", || lock.try_lock().is_ok()).await;
    }

    pub(crate) fn folder_of(&self, rank: RankId) -> PathBuf {
        let job = self.state().join("ranks").join(rank.attempt.job.to_string());
        job.join(rank.attempt.attempt.to_string()).join(rank.rank.to_string())
    }

    pub(crate) fn token(&self, name: &str, role: Role) -> Token {
        self.tokens.create(name, role, None, Time::EPOCH).unwrap()
    }

    /// Options of a worker with two host slots, and a token of its own.
    pub(crate) fn options(&mut self) -> WorkerOptions {
        self.names += 1;
        let token = self.token(&format!("worker-{}", self.names), Role::Worker);
        let head = self.listener.local_addr().to_string();
        let executor = cohabit_fakes::examples().unwrap().join("worker-test-executor");
        let mut options = WorkerOptions::new(head, token, self.state());
        options.executor_program = ExecutorProgram::At(executor);
        options.devices = DeviceSpec::Host(2);
        options.heartbeat = Span::from_millis(50);
        options
    }

    /// Starts a worker and accepts it.
    pub(crate) async fn worker(&mut self) -> (WorkerDaemon, Joined) {
        let options = self.options();
        self.worker_with(options).await
    }

    pub(crate) async fn worker_with(&mut self, options: WorkerOptions) -> (WorkerDaemon, Joined) {
        let mut daemon = WorkerDaemon::start(options).await.unwrap();
        let joined = self.joined().await;
        soon("the join", daemon.joined()).await.unwrap();
        (daemon, joined)
    }

    /// The next worker that connects.
    pub(crate) async fn joined(&mut self) -> Joined {
        let Incoming::Worker(peer) = soon("a worker", self.listener.accept()).await else {
            panic!("a client dialled");
        };
        let (key, inventory) = (peer.key(), peer.inventory().clone());
        let (heard, reports) = mpsc::unbounded_channel();
        let (takes_reports, takes) = watch::channel(true);
        let (beating, heartbeats) = watch::channel(0);
        let (code, pieces) = (Arc::clone(&self.code), Arc::clone(&self.pieces));
        let checkpoints = Arc::clone(&self.checkpoints);
        let ear = Ear { heard, takes, heartbeats: beating, code, pieces, checkpoints };
        let session = peer.start_session(ear).await;
        Joined { key, inventory, session, reports, takes_reports, heartbeats }
    }
}

/// Kills ranks that still run, as a worker would.
impl Drop for Cluster {
    fn drop(&mut self) {
        let folders = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<PathBuf>>()
        };
        let attempts = folders(&self.state().join("ranks")).into_iter().flat_map(|job| folders(&job));
        for rank in attempts.flat_map(|attempt| folders(&attempt)) {
            if let Ok(mut stream) = UnixStream::connect(rank.join("socket")) {
                let _ = stream.write_all(b"{\"signal\": [9, \"everything\"]}\n");
                let _ = stream.read_to_end(&mut Vec::new());
            }
        }
    }
}

impl Joined {
    pub(crate) fn held(&self) -> &[HeldRank] {
        &self.inventory.held_ranks
    }

    pub(crate) async fn order(&self, order: Order) {
        self.session.orders.order(context_for(Span::from_secs(10)), vec![order]).await.unwrap();
    }

    pub(crate) async fn report(&mut self) -> Report {
        soon("a report", self.reports.recv()).await.expect("the link is up")
    }

    /// Skips reports of progress until the rank runs.
    pub(crate) async fn started(&mut self, rank: RankId) {
        loop {
            match self.report().await {
                Report::Started { rank: started, .. } if started == rank => return,
                Report::Progress(_)
                | Report::Sharing { .. }
                | Report::PrivateUser { .. }
                | Report::Allotted { .. }
                | Report::Stalled { .. }
                | Report::SignalSent { .. }
                | Report::Checkpoints { .. }
                | Report::Condition { .. }
                | Report::Telemetry(_)
                | Report::Usage(_)
                | Report::Idle { .. }
                | Report::Active(_)
                | Report::ColocationSamples(_) => {}
                other @ (Report::Started { .. } | Report::Ended { .. }) => panic!("not its start: {other:?}"),
            }
        }
    }

    /// Skips everything else until the rank has ended.
    pub(crate) async fn ended(&mut self, rank: RankId) -> End {
        loop {
            match self.report().await {
                Report::Ended { rank: ended, outcome, stopped, progress, .. } if ended == rank => {
                    return End { outcome, stopped, progress };
                }
                Report::Started { .. }
                | Report::Progress(_)
                | Report::Sharing { .. }
                | Report::PrivateUser { .. }
                | Report::Allotted { .. }
                | Report::Stalled { .. }
                | Report::SignalSent { .. }
                | Report::Checkpoints { .. }
                | Report::Condition { .. }
                | Report::Telemetry(_)
                | Report::Usage(_)
                | Report::Idle { .. }
                | Report::Active(_)
                | Report::ColocationSamples(_)
                | Report::Ended { .. } => {}
            }
        }
    }

    /// The ends of these ranks in this order, whatever the order in which they arrive.
    pub(crate) async fn all_ended(&mut self, ranks: impl IntoIterator<Item = RankId>) -> Vec<End> {
        let ranks: Vec<RankId> = ranks.into_iter().collect();
        let mut ends = BTreeMap::new();
        while ends.len() < ranks.len() {
            if let Report::Ended { rank, outcome, stopped, progress, .. } = self.report().await {
                assert!(ranks.contains(&rank), "{rank} ended too");
                ends.insert(rank, End { outcome, stopped, progress });
            }
        }
        ends.into_values().collect()
    }

    pub(crate) async fn read_log(
        &self,
        rank: RankId,
        from: LogPosition,
        at_end: FollowMode,
    ) -> Result<LogChunk, Refusal> {
        let request = LogRequest { rank, from, at_end };
        self.session.orders.read_log(context_for(Span::from_secs(30)), request).await.unwrap()
    }

    pub(crate) async fn write_input(&self, piece: InputPiece) -> Result<u64, Refusal> {
        self.session.orders.write_input(context_for(Span::from_secs(30)), piece).await.unwrap()
    }

    pub(crate) async fn start_copy(&self, order: FileCopyOrder) -> Result<(), Refusal> {
        self.session.orders.start_copy(context_for(Span::from_secs(30)), order.into()).await.unwrap()
    }

    pub(crate) async fn read_copy(&self, read: CopyRead) -> Result<CopyPiece, Refusal> {
        self.session.orders.read_copy(context_for(Span::from_secs(30)), read).await.unwrap()
    }

    pub(crate) async fn end_copy(&self, copy: CopyId) -> Result<(), Refusal> {
        self.session.orders.end_copy(context_for(Span::from_secs(30)), copy).await.unwrap()
    }

    pub(crate) async fn start_exec(&self, request: ExecRequest) -> Result<(), Refusal> {
        self.session.orders.start_exec(context_for(Span::from_secs(30)), request.into()).await.unwrap()
    }

    pub(crate) async fn read_exec(&self, read: ExecRead) -> Result<ExecOutput, Refusal> {
        self.session.orders.read_exec(context_for(Span::from_secs(30)), read).await.unwrap()
    }

    pub(crate) async fn end_exec(&self, process: ExecId) -> Result<(), Refusal> {
        self.session.orders.end_exec(context_for(Span::from_secs(30)), process).await.unwrap()
    }

    /// What the rank has printed once this is part of it.
    pub(crate) async fn printed(&self, rank: RankId, part: &str) -> String {
        let (mut text, mut from) = (String::new(), LogPosition::Start);
        while !text.contains(part) {
            let chunk = self.read_log(rank, from, FollowMode::Wait).await.unwrap();
            assert!(!chunk.complete || !chunk.records.is_empty(), "it has ended after {text}");
            let bytes: Vec<u8> = chunk.records.into_iter().flat_map(|record| record.bytes).collect();
            text += &String::from_utf8(bytes).unwrap();
            from = LogPosition::At(chunk.next);
        }
        text
    }

    /// All output of the rank, read to its end.
    pub(crate) async fn followed(&self, rank: RankId) -> String {
        let (mut text, mut from) = (Vec::new(), LogPosition::Start);
        loop {
            let chunk = self.read_log(rank, from, FollowMode::Wait).await.unwrap();
            text.extend(chunk.records.into_iter().flat_map(|record| record.bytes));
            from = LogPosition::At(chunk.next);
            if chunk.complete {
                return String::from_utf8(text).unwrap();
            }
        }
    }
}

/// The only rank of the first attempt of this job.
pub(crate) fn rank(job: u64) -> RankId {
    JobId::new(job).attempt(1).rank(0)
}

pub(crate) fn shell(script: &str) -> JobSpec {
    JobSpec::command(vec!["sh".into(), "-c".into(), script.into()], "/".into())
}

/// An order to run this job's only rank on the first host slot.
pub(crate) fn run(job: u64, spec: JobSpec) -> Order {
    let ranks = vec![RankRun {
        rank: 0,
        local_rank: 0,
        node_rank: 0,
        devices: vec![DeviceId("host-0".into())],
        share: Share::WHOLE,
    }];
    let attempt = rank(job).attempt;
    Order::Run(Box::new(RunOrder {
        attempt,
        spec: spec.into(),
        user: "ada".into(),
        account: own_account(),
        role: Role::Admin,
        nodes: vec!["127.0.0.1".into()],
        world_size: 1,
        rendezvous: None,
        ranks,
        application: None,
        place: None,
        checkpoints: None,
        idle_after: None,
        after: None,
    }))
}

/// The same, with a rendezvous on this port.
pub(crate) fn run_to_meet(job: u64, spec: JobSpec, port: u16) -> Order {
    let Order::Run(order) = run(job, spec) else { unreachable!("it runs a job") };
    let rendezvous = Some(Rendezvous { address: "127.0.0.1".into(), port });
    Order::Run(Box::new(RunOrder { rendezvous, ..*order }))
}

/// The account that the tests run as.
fn own_account() -> String {
    nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap().name
}

/// A script that runs until this file exists.
pub(crate) fn until(file: &Path) -> String {
    format!("until [ -e {} ]; do sleep 0.02; done", file.display())
}

/// Whether a process runs; zombies do not.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}
