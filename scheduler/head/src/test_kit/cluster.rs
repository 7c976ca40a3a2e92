//! A head on loopback, with clients and workers that the test controls. Nothing sleeps: what does not
//! happen within a generous limit fails the test.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cohabit_net::{
    ClientServiceClient, Context, Endpoint, LinkError, Secret, Token, WorkerHello, WorkerLink, WorkerReports,
    WorkerService, connect_client, connect_worker, context_for,
};
use cohabit_types::{
    ChangeResult, CheckpointPiece, CheckpointQuery, CopyId, CopyPiece, CopyRead, DrainRequest, DryRun,
    ExecId, ExecOutput, ExecRead, ExecRequest, Explanation, Feed, FeedCursor, FileCopyOrder, Filter,
    ForwardId, ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest, HeadStatus, HeldRank, Incarnation,
    InputPiece, Inventory, IssuedToken, JobChange, JobId, JobRecord, JobRef, JobRevision, JobSpec,
    JobUpdates, ListPage, LogChunk, LogRecord, LogRequest, LogStream, MetricSeries, ModelChoice, Models,
    NewToken, NodeRecord, Order, Outcome, RankId, Refusal, RefusedWorker, Report, Role, RunOrder, Span,
    Submit, SubmitReceipt, TokenRecord, UpdateCursor, WorkerKey,
};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::{at, inventory, node, submit};
use crate::clock::wall_clock;
use crate::daemon::ChosenPolicy;
use crate::planner::PolicyFactory;
use crate::{HeadDaemon, HeadError, HeadOptions, InterferenceSource};

/// Only a broken head takes this long.
const LIMIT: Duration = Duration::from_secs(30);

/// Of the test machine's worker.
const CREDENTIAL: Secret = Secret::new([7; Secret::LENGTH]);

/// Waits, up to the limit.
pub(crate) async fn within<T>(waiting: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, waiting).await.expect("it happens within the limit")
}

/// A head and its state directory.
pub(crate) struct TestHead {
    pub(crate) folder: TempDir,
    pub(crate) daemon: HeadDaemon,
    options: HeadOptions,
}

/// A head that was stopped, and the directory that it left.
pub(crate) struct StoppedHead {
    pub(crate) folder: TempDir,
    options: HeadOptions,
}

impl StoppedHead {
    pub(crate) async fn started(self) -> TestHead {
        let daemon = HeadDaemon::start(self.options.clone()).await.unwrap();
        TestHead { folder: self.folder, daemon, options: self.options }
    }

    pub(crate) async fn try_started(&self) -> Result<HeadDaemon, HeadError> {
        HeadDaemon::start(self.options.clone()).await
    }

    pub(crate) const fn options(&self) -> &HeadOptions {
        &self.options
    }

    /// What a client with the operator's token hears at this address, where it is refused.
    pub(crate) async fn refused_client(&self, address: SocketAddr) -> LinkError {
        let token = Token::read_file(&self.folder.path().join("admin.token")).unwrap();
        let endpoint = Endpoint { address: address.to_string(), token };
        within(connect_client(&endpoint)).await.expect_err("it is refused")
    }

    /// What a person's query to the journal gives: the first column of the first row.
    pub(crate) fn ask(&self, sql: &str) -> String {
        ask(self.folder.path(), sql)
    }
}

/// The first column of the first row of the answer.
fn ask(folder: &Path, sql: &str) -> String {
    let journal = rusqlite::Connection::open(folder.join("journal.sqlite")).unwrap();
    journal.query_row(sql, [], |row| row.get(0)).unwrap()
}

impl TestHead {
    pub(crate) async fn start() -> TestHead {
        TestHead::start_like(|_| {}).await
    }

    pub(crate) async fn start_like(change: impl FnOnce(&mut HeadOptions)) -> TestHead {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(folder.path());
        change(&mut options);
        let daemon = HeadDaemon::start(options.clone()).await.unwrap();
        TestHead { folder, daemon, options }
    }

    pub(crate) async fn start_with(policy: PolicyFactory, plan_limit: Duration) -> TestHead {
        let folder = tempfile::tempdir().unwrap();
        let options = HeadOptions { plan_limit, ..options(folder.path()) };
        let daemon = HeadDaemon::start_with(options.clone(), chosen(policy)).await.unwrap();
        TestHead { folder, daemon, options }
    }

    /// Stops it and starts it again with another policy.
    pub(crate) async fn restarted_with(self, policy: PolicyFactory) -> TestHead {
        self.daemon.stop().await.unwrap();
        let started = HeadDaemon::start_with(self.options.clone(), chosen(policy)).await;
        TestHead { daemon: started.unwrap(), ..self }
    }

    /// Stops it and starts it again.
    pub(crate) async fn restarted(self) -> TestHead {
        self.daemon.stop().await.unwrap();
        let daemon = HeadDaemon::start(self.options.clone()).await.unwrap();
        TestHead { daemon, ..self }
    }

    /// Drops it, which is like a kill, and starts it again.
    pub(crate) async fn killed_and_started(self) -> TestHead {
        drop(self.daemon);
        let daemon = HeadDaemon::start(self.options.clone()).await.unwrap();
        TestHead { daemon, ..self }
    }

    /// Drops it, edits its journal to what a crash may leave, and starts it with another policy.
    pub(crate) async fn crashed_and_started_with(self, sql: &str, policy: PolicyFactory) -> TestHead {
        drop(self.daemon);
        let journal = rusqlite::Connection::open(self.folder.path().join("journal.sqlite")).unwrap();
        journal.execute_batch(sql).unwrap();
        drop(journal);
        let started = HeadDaemon::start_with(self.options.clone(), chosen(policy)).await;
        TestHead { daemon: started.unwrap(), ..self }
    }

    /// Drops it, which is like a kill, and keeps its directory.
    pub(crate) fn killed(self) -> StoppedHead {
        drop(self.daemon);
        StoppedHead { folder: self.folder, options: self.options }
    }

    /// Stops it in order, and keeps its directory.
    pub(crate) async fn stopped(self) -> StoppedHead {
        self.daemon.stop().await.unwrap();
        StoppedHead { folder: self.folder, options: self.options }
    }

    pub(crate) async fn start_another(
        &self,
        change: impl FnOnce(&mut HeadOptions),
    ) -> Result<HeadDaemon, HeadError> {
        let mut options = self.options.clone();
        change(&mut options);
        HeadDaemon::start(options).await
    }

    pub(crate) fn endpoint(&self, token: Token) -> Endpoint {
        Endpoint { address: self.daemon.address().to_string(), token }
    }

    /// A client with the operator's token.
    pub(crate) async fn admin(&self) -> TestClient {
        let token = Token::read_file(&self.daemon.admin_token_file()).unwrap();
        self.client(token).await.unwrap()
    }

    pub(crate) async fn client(&self, token: Token) -> Result<TestClient, LinkError> {
        let (head, accepted) = within(connect_client(&self.endpoint(token))).await?;
        Ok(TestClient { head, user: accepted.by.user })
    }

    /// A client with a new token of this name.
    pub(crate) async fn user(&self, name: &str) -> TestClient {
        self.client_with_role(name, Role::User).await
    }

    /// A client with a new token of this name and role.
    pub(crate) async fn client_with_role(&self, name: &str, role: Role) -> TestClient {
        let new = NewToken { name: name.into(), role, account: None, node: None, expires_in: None };
        let issued = self.admin().await.create_token(new).await.unwrap();
        self.client(issued.text.parse().unwrap()).await.unwrap()
    }

    /// A worker on the test machine, with this incarnation of its link.
    pub(crate) async fn worker(&self, incarnation: u64, held: Vec<HeldRank>) -> TestWorker {
        self.worker_with(incarnation, Inventory { held_ranks: held, ..inventory() }).await
    }

    /// The same with another inventory.
    pub(crate) async fn worker_with(&self, incarnation: u64, inventory: Inventory) -> TestWorker {
        self.try_worker(incarnation, Some(CREDENTIAL), inventory).await.unwrap()
    }

    /// The same with another credential.
    pub(crate) async fn try_worker(
        &self,
        incarnation: u64,
        credential: Option<Secret>,
        inventory: Inventory,
    ) -> Result<TestWorker, LinkError> {
        let key = WorkerKey { node: node(), incarnation: Incarnation(incarnation) };
        self.try_worker_as(key, credential, inventory).await
    }

    /// The same for any node.
    pub(crate) async fn try_worker_as(
        &self,
        key: WorkerKey,
        credential: Option<Secret>,
        inventory: Inventory,
    ) -> Result<TestWorker, LinkError> {
        let token = Token::read_file(&self.daemon.worker_token_file()).unwrap();
        self.try_worker_with(token, WorkerHello { key, credential, inventory }).await
    }

    /// The same with any token.
    pub(crate) async fn try_worker_with(
        &self,
        token: Token,
        hello: WorkerHello,
    ) -> Result<TestWorker, LinkError> {
        let (tell, orders) = mpsc::unbounded_channel();
        let link = within(connect_worker(&self.endpoint(token), hello, Orders(tell))).await?;
        Ok(TestWorker { link, orders })
    }

    /// The first column of the first row of a query to the journal.
    pub(crate) fn ask(&self, sql: &str) -> String {
        ask(self.folder.path(), sql)
    }
}

fn options(folder: &Path) -> HeadOptions {
    let listen = "127.0.0.1:0".parse().unwrap();
    let interference = InterferenceSource::Law;
    HeadOptions { listen, interference, learn_every: Duration::ZERO, ..HeadOptions::new(folder) }
}

/// A client.
#[derive(Clone)]
pub(crate) struct TestClient {
    pub(crate) head: ClientServiceClient,
    pub(crate) user: String,
}

fn long() -> Context {
    context_for(Span::from_secs(60))
}

impl TestClient {
    pub(crate) async fn try_submit(&self, submit: Submit) -> Result<SubmitReceipt, Refusal> {
        within(self.head.submit(long(), Box::new(submit.spec), submit.idempotency_key)).await.unwrap()
    }

    pub(crate) async fn change(
        &self,
        change: JobChange,
        jobs: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        within(self.head.change_jobs(long(), change, jobs)).await.unwrap()
    }

    pub(crate) async fn drain(&self, name: &str) -> Result<String, Refusal> {
        within(self.head.drain_node(long(), DrainRequest::new(name))).await.unwrap()
    }

    pub(crate) async fn resume(&self, name: &str) -> Result<String, Refusal> {
        within(self.head.resume_node(long(), name.into())).await.unwrap()
    }

    pub(crate) async fn resolve(&self, references: Vec<JobRef>) -> Result<Vec<JobId>, Refusal> {
        within(self.head.resolve(long(), references)).await.unwrap()
    }

    pub(crate) async fn list(&self, filter: Filter) -> Result<ListPage, Refusal> {
        within(self.head.list(long(), filter)).await.unwrap()
    }

    pub(crate) async fn records(&self, jobs: Vec<JobId>) -> Result<Vec<JobRecord>, Refusal> {
        within(self.head.show(long(), jobs)).await.unwrap()
    }

    pub(crate) async fn explain(&self, job: JobId) -> Result<Explanation, Refusal> {
        within(self.head.explain(long(), job)).await.unwrap()
    }

    pub(crate) async fn dry_run(&self, spec: JobSpec) -> Result<Box<DryRun>, Refusal> {
        within(self.head.dry_run(long(), Box::new(spec))).await.unwrap()
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<NodeRecord>, Refusal> {
        within(self.head.nodes(long())).await.unwrap()
    }

    pub(crate) async fn watch(&self, known: Vec<JobRevision>) -> Result<Vec<JobRecord>, Refusal> {
        within(self.head.watch(long(), known)).await.unwrap()
    }

    pub(crate) async fn read_log(&self, request: LogRequest) -> Result<LogChunk, Refusal> {
        within(self.head.read_log(long(), request)).await.unwrap()
    }

    pub(crate) async fn unbind(&self, name: &str) -> Result<String, Refusal> {
        within(self.head.unbind_node(long(), name.into())).await.unwrap()
    }

    pub(crate) async fn refused_workers(&self) -> Result<Vec<RefusedWorker>, Refusal> {
        within(self.head.refused_workers(long())).await.unwrap()
    }

    pub(crate) async fn create_token(&self, token: NewToken) -> Result<IssuedToken, Refusal> {
        within(self.head.create_token(long(), token)).await.unwrap()
    }

    pub(crate) async fn tokens(&self) -> Result<Vec<TokenRecord>, Refusal> {
        within(self.head.list_tokens(long())).await.unwrap()
    }

    pub(crate) async fn own_token(&self) -> Result<TokenRecord, Refusal> {
        within(self.head.own_token(long())).await.unwrap()
    }

    pub(crate) async fn head_status(&self) -> Result<HeadStatus, Refusal> {
        within(self.head.head_status(long())).await.unwrap()
    }

    pub(crate) async fn head_problems(&self) -> Vec<String> {
        within(self.head.head_problems(long())).await.unwrap().unwrap()
    }

    pub(crate) async fn job_updates(&self, after: Option<UpdateCursor>) -> JobUpdates {
        within(self.head.job_updates(long(), after)).await.unwrap().unwrap()
    }

    pub(crate) async fn feed(&self, after: Option<FeedCursor>) -> Feed {
        within(self.head.feed(long(), after)).await.unwrap().unwrap()
    }

    pub(crate) async fn revoke_token(&self, name: &str) -> Result<(), Refusal> {
        within(self.head.revoke_token(long(), name.into())).await.unwrap()
    }

    pub(crate) async fn models(&self) -> Result<Models, Refusal> {
        within(self.head.list_models(long())).await.unwrap()
    }

    pub(crate) async fn choose_model(&self, choice: ModelChoice) -> Result<Models, Refusal> {
        within(self.head.choose_model(long(), choice)).await.unwrap()
    }

    pub(crate) async fn submit(&self) -> JobId {
        self.submit_like(|_| {}).await
    }

    pub(crate) async fn submit_like(&self, change: impl FnOnce(&mut JobSpec)) -> JobId {
        let mut submit = submit();
        change(&mut submit.spec);
        self.try_submit(submit).await.unwrap().job
    }

    pub(crate) async fn show(&self, job: JobId) -> JobRecord {
        self.records(vec![job]).await.unwrap().remove(0)
    }

    /// Watches the job until its record satisfies the condition.
    pub(crate) async fn seen(&self, job: JobId, wanted: impl Fn(&JobRecord) -> bool) -> JobRecord {
        let mut revision = 0;
        loop {
            for record in self.watch(vec![JobRevision { job, revision }]).await.unwrap() {
                if wanted(&record) {
                    return record;
                }
                revision = record.revision;
            }
        }
    }
}

/// A worker that the test controls.
pub(crate) struct TestWorker {
    pub(crate) link: WorkerLink,
    orders: mpsc::UnboundedReceiver<Order>,
}

impl TestWorker {
    pub(crate) fn head(&self) -> &WorkerReports {
        &self.link.head
    }

    pub(crate) async fn next_order(&mut self) -> Order {
        within(self.orders.recv()).await.expect("the link should be there")
    }

    /// The next order, which must be to run an attempt.
    pub(crate) async fn next_run(&mut self) -> RunOrder {
        let order = self.next_order().await;
        let Order::Run(run) = order else { panic!("{order:?}") };
        *run
    }

    pub(crate) async fn report(&self, report: Report) {
        within(self.head().report(long(), vec![report])).await.unwrap();
    }

    pub(crate) async fn started(&self, rank: RankId) {
        self.report(Report::Started { rank, at: at(0) }).await;
    }

    pub(crate) async fn ended(&self, rank: RankId, outcome: Outcome) {
        self.report(Report::Ended {
            rank,
            outcome,
            stopped: None,
            progress: None,
            at: wall_clock(),
            usage: Vec::new(),
        })
        .await;
    }

    /// Runs the next job to its end.
    pub(crate) async fn run_one(&mut self, outcome: Outcome) -> RankId {
        let rank = self.next_run().await.attempt.rank(0);
        self.started(rank).await;
        self.ended(rank, outcome).await;
        assert_eq!(self.next_order().await, Order::Acknowledge(rank));
        rank
    }
}

#[derive(Clone)]
struct Orders(mpsc::UnboundedSender<Order>);

/// Passes orders on to the test, and has one line of output for each rank.
impl WorkerService for Orders {
    async fn order(self, _: Context, orders: Vec<Order>) {
        orders.into_iter().for_each(|order| drop(self.0.send(order)));
    }

    async fn read_log(self, _: Context, request: LogRequest) -> Result<LogChunk, Refusal> {
        let bytes = format!("{} says hello\n", request.rank).into_bytes();
        let record = LogRecord { stream: LogStream::Stdout, at: at(0), bytes };
        Ok(LogChunk { records: vec![record], next: 1, dropped: 0, complete: true })
    }

    async fn read_metrics(self, _: Context, _: RankId) -> Result<MetricSeries, Refusal> {
        Ok(MetricSeries::default())
    }

    /// Has all of the input that it is sent.
    async fn start_exec(self, _: Context, _: Box<ExecRequest>) -> Result<(), Refusal> {
        Ok(())
    }

    async fn read_exec(self, _: Context, _: ExecRead) -> Result<ExecOutput, Refusal> {
        Ok(ExecOutput { outcome: Some(Outcome::Exited(0)), ..ExecOutput::default() })
    }

    async fn end_exec(self, _: Context, _: ExecId) -> Result<(), Refusal> {
        Ok(())
    }

    async fn open_forward(self, _: Context, _: ForwardRequest) -> Result<(), Refusal> {
        Ok(())
    }

    async fn read_forward(self, _: Context, _: ForwardRead) -> Result<ForwardOutput, Refusal> {
        Ok(ForwardOutput { bytes: b"pong".to_vec(), is_last: true })
    }

    async fn write_forward(self, _: Context, piece: ForwardPiece) -> Result<u64, Refusal> {
        Ok(piece.offset + piece.bytes.len() as u64)
    }

    async fn close_forward(self, _: Context, _: ForwardId) -> Result<(), Refusal> {
        Ok(())
    }

    async fn start_copy(self, _: Context, _: Box<FileCopyOrder>) -> Result<(), Refusal> {
        Ok(())
    }

    async fn read_copy(self, _: Context, _: CopyRead) -> Result<CopyPiece, Refusal> {
        Ok(CopyPiece { bytes: b"file".to_vec(), is_last: true })
    }

    async fn end_copy(self, _: Context, _: CopyId) -> Result<(), Refusal> {
        Ok(())
    }

    async fn write_input(self, _: Context, piece: InputPiece) -> Result<u64, Refusal> {
        Ok(piece.offset + piece.bytes.len() as u64)
    }

    /// Gives away checkpoints of three bytes.
    async fn read_checkpoints(self, _: Context, query: CheckpointQuery) -> Result<CheckpointPiece, Refusal> {
        Ok(CheckpointPiece { size: 3, offset: query.offset, lacks_earlier: false, bytes: b"tar".to_vec() })
    }
}

fn chosen(factory: PolicyFactory) -> ChosenPolicy {
    ChosenPolicy { factory, uses_interference: true, sensitivity: Arc::default() }
}

/// A policy for `start_with`.
pub(crate) fn policy<P: cohabit_policy::Policy + 'static>(
    new: impl Fn() -> P + Send + Sync + 'static,
) -> PolicyFactory {
    Arc::new(move || Box::new(new()))
}
