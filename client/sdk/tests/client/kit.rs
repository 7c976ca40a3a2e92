//! The fake head and the words of the tests.
//!
//! A test gives the head its answers, either as a list or as a function of the call, and looks at the calls
//! that arrived. A head whose list is used up keeps its callers waiting, as a head does that has no news.

use std::collections::VecDeque;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cohabit_client::types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, ApplicationQuestion, ApplicationRecord, Bytes,
    ChangeResult, CodeRequest, ContentHash, ContentPiece, CopyId, CopyPiece, CopyRead, CopyRequest,
    DrainRequest, DryRun, ExecId, ExecOutput, ExecRead, ExecRequest, Explanation, Feed, FeedCursor, Figures,
    Filter, ForwardId, ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest, HeadStatus, InputPiece,
    IssuedToken, JobChange, JobId, JobRecord, JobRef, JobRevision, JobSettings, JobSpec, JobUpdates,
    ListPage, LogChunk, LogRecord, LogRequest, LogStream, MetricSeries, ModelChoice, Models, NewToken,
    NodeRecord, NodeReservation, ObjectListing, RankId, Refusal, RefusalCode, RefusedWorker,
    ReservationRequest, Role, ShareReport, ShareTable, SubmitReceipt, TaskListing, Time, TokenRecord,
    UpdateCursor, UsageRecord, UsageReport, UsageReportRequest,
};
use cohabit_client::{Client, ConnectOptions, Token};
use cohabit_net::{ClientService, Context, HeadIdentity, Incoming, Listener, TokenStore};
use cohabit_store::{ContentError, ContentStore, StoreKind, StoreLimits};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) use crate::calls::{Call, Turn};

/// Whether the link breaks under a call that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Sent,
    Lost,
}

/// What happens while the head stores the n-th message with content, from 1.
pub(crate) type OnContent = Arc<Mutex<dyn FnMut(usize) -> Answer + Send>>;

/// A head's state directory, which survives the head.
pub(crate) struct Cluster {
    folder: TempDir,
    tokens: TokenStore,
    pub(crate) content: Arc<ContentStore>,
    pub(crate) on_content: OnContent,
    pub(crate) token: Token,
}

/// A listener that gives prepared answers.
pub(crate) struct FakeHead {
    pub(crate) address: SocketAddr,
    calls: Arc<Mutex<Vec<Call>>>,
    connections: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
    cut: watch::Sender<u64>,
}

impl Cluster {
    pub(crate) fn new() -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let identity = HeadIdentity::open_or_create(folder.path()).unwrap();
        let tokens = TokenStore::open(&folder.path().join("tokens"), identity.fingerprint()).unwrap();
        let token = tokens.create("ada", Role::Admin, None, Time::EPOCH).unwrap();
        let limits = StoreLimits { bytes: Bytes(64 << 20), files: 1_000 };
        let content = ContentStore::open(&folder.path().join("code"), StoreKind::Cache, limits).unwrap();
        let on_content = Arc::new(Mutex::new(|_| Answer::Sent));
        Cluster { folder, tokens, content: content.into(), on_content, token }
    }

    /// A head that answers with these turns, one after another.
    pub(crate) async fn head(&self, turns: impl IntoIterator<Item = Turn>) -> FakeHead {
        self.head_at("127.0.0.1:0".parse().unwrap(), turns).await
    }

    pub(crate) async fn head_at(
        &self,
        address: SocketAddr,
        turns: impl IntoIterator<Item = Turn>,
    ) -> FakeHead {
        let mut turns: VecDeque<Turn> = turns.into_iter().collect();
        self.head_with(address, move |_| turns.pop_front().unwrap_or(Turn::Wait)).await
    }

    /// A head that answers with what this makes of a call.
    pub(crate) async fn head_with(
        &self,
        address: SocketAddr,
        turn: impl FnMut(&Call) -> Turn + Send + 'static,
    ) -> FakeHead {
        let identity = HeadIdentity::open_or_create(self.folder.path()).unwrap();
        let mut listener = Listener::bind(address, &identity, self.tokens.clone()).await.unwrap();
        let (address, calls, cut) = (listener.local_addr(), Arc::default(), watch::Sender::new(0));
        let service = Script {
            content: Arc::clone(&self.content),
            on_content: Arc::clone(&self.on_content),
            calls: Arc::clone(&calls),
            turn: Arc::new(Mutex::new(turn)),
            cut: cut.clone(),
        };
        let connections = Arc::new(AtomicUsize::new(0));
        let accepted = Arc::clone(&connections);
        let accepting = tokio::spawn(async move {
            loop {
                if let Incoming::Client(peer) = listener.accept().await {
                    accepted.fetch_add(1, Ordering::SeqCst);
                    let (service, mut cut) = (service.clone(), service.cut.subscribe());
                    tokio::spawn(async move {
                        tokio::select! { _ = peer.serve(service) => {}, _ = cut.changed() => {} }
                    });
                }
            }
        });
        FakeHead { address, calls, connections, accepting, cut }
    }

    pub(crate) fn client_of(&self, address: SocketAddr) -> Client {
        Client::disconnected(ConnectOptions { head: address.to_string(), token: self.token.clone() })
    }
}

impl FakeHead {
    /// The calls that arrived, pings left out.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// How often a client connected.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Breaks all connections.
    pub(crate) fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    /// Ends the head and all its connections; its port is free when this returns.
    pub(crate) async fn stop(self) {
        self.accepting.abort();
        assert!(self.accepting.await.unwrap_err().is_cancelled());
        self.cut.send_modify(|cuts| *cuts += 1);
    }
}

fn refused(error: ContentError) -> Refusal {
    Refusal::new(RefusalCode::Invalid, error.to_string())
}

/// The service of a fake head. What clients upload is stored as in a real one.
struct Script<F> {
    content: Arc<ContentStore>,
    on_content: OnContent,
    calls: Arc<Mutex<Vec<Call>>>,
    turn: Arc<Mutex<F>>,
    cut: watch::Sender<u64>,
}

impl<F> Clone for Script<F> {
    fn clone(&self) -> Self {
        Script {
            content: Arc::clone(&self.content),
            on_content: Arc::clone(&self.on_content),
            calls: Arc::clone(&self.calls),
            turn: Arc::clone(&self.turn),
            cut: self.cut.clone(),
        }
    }
}

impl<F: FnMut(&Call) -> Turn> Script<F> {
    /// A call to which a script has no answer but a refusal.
    async fn unanswered<T>(self, call: Call) -> Result<T, Refusal> {
        let turn = self.turn(call).await?;
        panic!("{turn:?} does not answer this call")
    }

    async fn turn(self, call: Call) -> Result<Turn, Refusal> {
        let turn = (self.turn.lock().unwrap())(&call);
        self.calls.lock().unwrap().push(call);
        if let Turn::Refuse(refusal) = turn {
            return Err(refusal);
        }
        if !matches!(turn, Turn::Cut | Turn::Wait) {
            return Ok(turn);
        }
        if matches!(turn, Turn::Cut) {
            self.cut.send_modify(|cuts| *cuts += 1);
        }
        pending().await
    }
}

impl<F: FnMut(&Call) -> Turn + Send + 'static> ClientService for Script<F> {
    async fn submit(
        self,
        _: Context,
        spec: Box<JobSpec>,
        key: Option<String>,
    ) -> Result<SubmitReceipt, Refusal> {
        let turn = self.turn(Call::Submit(spec, key)).await?;
        let Turn::Accepted(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn change_jobs(
        self,
        _: Context,
        change: JobChange,
        jobs: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        let turn = self.turn(Call::ChangeJobs(change, jobs)).await?;
        let Turn::Changed(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn update_jobs(
        self,
        _: Context,
        update: JobSettings,
        jobs: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        self.unanswered(Call::UpdateJobs(update, jobs)).await
    }

    async fn drain_node(self, _: Context, drain: DrainRequest) -> Result<String, Refusal> {
        let turn = self.turn(Call::DrainNode(drain.node)).await?;
        let Turn::Node(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn resume_node(self, _: Context, name: String) -> Result<String, Refusal> {
        let turn = self.turn(Call::ResumeNode(name)).await?;
        let Turn::Node(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn unbind_node(self, _: Context, name: String) -> Result<String, Refusal> {
        let turn = self.turn(Call::UnbindNode(name)).await?;
        let Turn::Node(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn refused_workers(self, _: Context) -> Result<Vec<RefusedWorker>, Refusal> {
        let turn = self.turn(Call::RefusedWorkers).await?;
        let Turn::RefusedWorkers(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn resolve(self, _: Context, references: Vec<JobRef>) -> Result<Vec<JobId>, Refusal> {
        let turn = self.turn(Call::Resolve(references)).await?;
        let Turn::Resolved(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn list(self, _: Context, filter: Filter) -> Result<ListPage, Refusal> {
        let turn = self.turn(Call::List(filter)).await?;
        let Turn::Listed(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn show(self, _: Context, jobs: Vec<JobId>) -> Result<Vec<JobRecord>, Refusal> {
        let turn = self.turn(Call::Show(jobs)).await?;
        let Turn::Jobs(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn explain(self, _: Context, job: JobId) -> Result<Explanation, Refusal> {
        let turn = self.turn(Call::Explain(job)).await?;
        let Turn::Explained(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn dry_run(self, _: Context, spec: Box<JobSpec>) -> Result<Box<DryRun>, Refusal> {
        let turn = self.turn(Call::DryRun(spec)).await?;
        let Turn::DryRun(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn nodes(self, _: Context) -> Result<Vec<NodeRecord>, Refusal> {
        let turn = self.turn(Call::Nodes).await?;
        let Turn::Nodes(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn watch(self, _: Context, known: Vec<JobRevision>) -> Result<Vec<JobRecord>, Refusal> {
        let turn = self.turn(Call::Watch(known)).await?;
        let Turn::Jobs(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn read_log(self, _: Context, request: LogRequest) -> Result<LogChunk, Refusal> {
        let turn = self.turn(Call::ReadLog(request)).await?;
        let Turn::Log(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn create_token(self, _: Context, token: NewToken) -> Result<IssuedToken, Refusal> {
        let turn = self.turn(Call::CreateToken(token)).await?;
        let Turn::Token(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn list_tokens(self, _: Context) -> Result<Vec<TokenRecord>, Refusal> {
        let turn = self.turn(Call::ListTokens).await?;
        let Turn::Tokens(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn revoke_token(self, _: Context, name: String) -> Result<(), Refusal> {
        let turn = self.turn(Call::RevokeToken(name)).await?;
        let Turn::Revoked = turn else { panic!("{turn:?} does not answer this call") };
        Ok(())
    }

    async fn list_models(self, _: Context) -> Result<Models, Refusal> {
        let turn = self.turn(Call::ListModels).await?;
        let Turn::Models(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn choose_model(self, _: Context, choice: ModelChoice) -> Result<Models, Refusal> {
        let turn = self.turn(Call::ChooseModel(choice)).await?;
        let Turn::Models(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn applications(
        self,
        _: Context,
        owner: ApplicationOwner,
    ) -> Result<Vec<ApplicationRecord>, Refusal> {
        let turn = self.turn(Call::Applications(owner)).await?;
        let Turn::Applications(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn actors(self, _: Context, application: JobId) -> Result<ActorListing, Refusal> {
        let turn = self.turn(Call::Actors(application)).await?;
        let Turn::Inspected(ApplicationAnswer::Actors(it)) = turn else { panic!("{turn:?}") };
        Ok(it)
    }

    async fn tasks(self, _: Context, application: JobId) -> Result<TaskListing, Refusal> {
        let turn = self.turn(Call::Tasks(application)).await?;
        let Turn::Inspected(ApplicationAnswer::Tasks(it)) = turn else { panic!("{turn:?}") };
        Ok(it)
    }

    async fn objects(self, _: Context, application: JobId) -> Result<ObjectListing, Refusal> {
        let turn = self.turn(Call::Objects(application)).await?;
        let Turn::Inspected(ApplicationAnswer::Objects(it)) = turn else { panic!("{turn:?}") };
        Ok(it)
    }

    async fn questions(self, _: Context) -> Result<Vec<ApplicationQuestion>, Refusal> {
        let turn = self.turn(Call::Questions).await?;
        let Turn::Questions(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn answer_question(
        self,
        _: Context,
        number: u64,
        answer: Box<ApplicationAnswer>,
    ) -> Result<(), Refusal> {
        let turn = self.turn(Call::AnswerQuestion(number, answer)).await?;
        let Turn::AnswerTaken = turn else { panic!("{turn:?} does not answer this call") };
        Ok(())
    }

    async fn missing_content(self, _: Context, files: Vec<ContentHash>) -> Result<Vec<ContentHash>, Refusal> {
        self.calls.lock().unwrap().push(Call::MissingContent(files.len()));
        Ok(self.content.missing(&files))
    }

    async fn put_content(self, _: Context, pieces: Vec<ContentPiece>) -> Result<Vec<u64>, Refusal> {
        let sizes = pieces.iter().map(|piece| (piece.file, piece.offset, piece.bytes.len())).collect();
        let number = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(Call::PutContent(sizes));
            calls.iter().filter(|call| matches!(call, Call::PutContent(_))).count()
        };
        let stored = self.content.put(&pieces).map_err(refused);
        let answer = (self.on_content.lock().unwrap())(number);
        if answer == Answer::Lost {
            self.cut.send_modify(|cuts| *cuts += 1);
            pending::<()>().await;
        }
        stored
    }

    async fn read_code(self, _: Context, request: CodeRequest) -> Result<ContentPiece, Refusal> {
        self.content.read(&request.file, request.offset).map_err(refused)
    }

    async fn ping(self, _: Context) {}

    async fn own_token(self, _: Context) -> Result<TokenRecord, Refusal> {
        let turn = self.turn(Call::OwnToken).await?;
        let Turn::Tokens(mut it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it.remove(0))
    }

    async fn head_status(self, _: Context) -> Result<HeadStatus, Refusal> {
        self.unanswered(Call::HeadStatus).await
    }

    async fn head_problems(self, _: Context) -> Result<Vec<String>, Refusal> {
        self.unanswered(Call::HeadProblems).await
    }

    async fn job_updates(self, _: Context, after: Option<UpdateCursor>) -> Result<JobUpdates, Refusal> {
        let turn = self.turn(Call::JobUpdates(after)).await?;
        let Turn::Updates(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn feed(self, _: Context, after: Option<FeedCursor>) -> Result<Feed, Refusal> {
        let turn = self.turn(Call::Feed(after)).await?;
        let Turn::Feed(it) = turn else { panic!("{turn:?} does not answer this call") };
        Ok(it)
    }

    async fn shares(self, _: Context) -> Result<Box<ShareReport>, Refusal> {
        self.unanswered(Call::Shares).await
    }

    async fn apply_shares(self, _: Context, _: Box<ShareTable>, _: bool) -> Result<(), Refusal> {
        self.unanswered(Call::ApplyShares).await
    }

    async fn reserve(self, _: Context, _: Box<ReservationRequest>) -> Result<Box<NodeReservation>, Refusal> {
        self.unanswered(Call::Reserve).await
    }

    async fn cancel_reservation(self, _: Context, _: u64) -> Result<Box<NodeReservation>, Refusal> {
        self.unanswered(Call::CancelReservation).await
    }

    async fn reservations(self, _: Context) -> Result<Vec<NodeReservation>, Refusal> {
        self.unanswered(Call::Reservations).await
    }

    async fn figures(self, _: Context) -> Result<Box<Figures>, Refusal> {
        self.unanswered(Call::Figures).await
    }

    async fn usage_report(self, _: Context, _: UsageReportRequest) -> Result<Box<UsageReport>, Refusal> {
        self.unanswered(Call::Figures).await
    }

    async fn usage(self, _: Context, jobs: Vec<JobId>) -> Result<Vec<UsageRecord>, Refusal> {
        self.unanswered(Call::Usage(jobs)).await
    }

    async fn start_exec(self, _: Context, _: Box<ExecRequest>) -> Result<(), Refusal> {
        self.unanswered(Call::Exec).await
    }

    async fn read_exec(self, _: Context, _: ExecRead) -> Result<ExecOutput, Refusal> {
        self.unanswered(Call::Exec).await
    }

    async fn end_exec(self, _: Context, _: ExecId) -> Result<(), Refusal> {
        self.unanswered(Call::Exec).await
    }

    async fn open_forward(self, _: Context, _: ForwardRequest) -> Result<(), Refusal> {
        let turn = self.turn(Call::Exec).await?;
        panic!("{turn:?} does not answer this call")
    }

    async fn read_forward(self, _: Context, _: ForwardRead) -> Result<ForwardOutput, Refusal> {
        let turn = self.turn(Call::Exec).await?;
        panic!("{turn:?} does not answer this call")
    }

    async fn write_forward(self, _: Context, _: ForwardPiece) -> Result<u64, Refusal> {
        let turn = self.turn(Call::Exec).await?;
        panic!("{turn:?} does not answer this call")
    }

    async fn close_forward(self, _: Context, _: ForwardId) -> Result<(), Refusal> {
        let turn = self.turn(Call::Exec).await?;
        panic!("{turn:?} does not answer this call")
    }

    async fn start_copy(self, _: Context, _: Box<CopyRequest>) -> Result<(), Refusal> {
        self.unanswered(Call::Exec).await
    }

    async fn read_copy(self, _: Context, _: CopyRead) -> Result<CopyPiece, Refusal> {
        self.unanswered(Call::Exec).await
    }

    async fn end_copy(self, _: Context, _: CopyId) -> Result<(), Refusal> {
        self.unanswered(Call::Exec).await
    }

    async fn write_input(self, _: Context, piece: InputPiece) -> Result<u64, Refusal> {
        self.unanswered(Call::WriteInput(piece)).await
    }

    async fn read_metrics(self, _: Context, rank: RankId) -> Result<MetricSeries, Refusal> {
        self.unanswered(Call::ReadMetrics(rank)).await
    }
}

/// An answer with these records.
pub(crate) fn jobs(records: impl IntoIterator<Item = JobRecord>) -> Turn {
    Turn::Jobs(records.into_iter().collect())
}

/// A piece of output up to this position.
pub(crate) fn printed(text: &str, next: u64) -> LogChunk {
    let record = LogRecord { stream: LogStream::Stdout, at: Time::EPOCH, bytes: text.into() };
    let records = if text.is_empty() { Vec::new() } else { vec![record] };
    LogChunk { records, next, dropped: 0, complete: false }
}

pub(crate) fn refusal(code: RefusalCode) -> Refusal {
    Refusal::new(code, format!("refused as {code:?}"))
}
