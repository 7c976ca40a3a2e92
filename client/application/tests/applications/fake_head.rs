//! A fake head and worker in one: a real listener with TLS and tokens, which starts the processes of
//! applications itself, and again when they fail, as a head and a worker do.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use cohabit_client::types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, ApplicationQuestion, ApplicationRecord,
    ApplicationSecret, Bytes, ChangeResult, CodeRequest, CodeSnapshot, ContentHash, ContentPiece, CopyId,
    CopyPiece, CopyRead, CopyRequest, Demand, DrainRequest, DryRun, Entrypoint, ExecId, ExecOutput, ExecRead,
    ExecRequest, Explanation, Feed, FeedCursor, Figures, Filter, FollowMode, ForwardId, ForwardOutput,
    ForwardPiece, ForwardRead, ForwardRequest, GpuRequest, HeadStatus, InputPiece, IssuedToken, JobChange,
    JobId, JobRecord, JobRef, JobRevision, JobSettings, JobSpec, JobUpdates, ListPage, LogChunk, LogPosition,
    LogRequest, LogStream, MetricSeries, ModelChoice, Models, NewToken, NodeRecord, NodeReservation,
    ObjectListing, RankId, Refusal, RefusalCode, RefusedWorker, ReservationRequest, Role, RunnerRole,
    RunnerWork, ShareReport, ShareTable, SubmitReceipt, TaskListing, Time, TokenRecord, UpdateCursor,
    UsageRecord, UsageReport, UsageReportRequest,
};
use cohabit_client::{ConnectOptions, Token};
use cohabit_net::{ClientService, Context, HeadIdentity, Incoming, Listener, TokenStore};
use cohabit_store::{ContentStore, StoreKind, StoreLimits};
use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Child;
use tokio::sync::watch;

use crate::fake_jobs::{FakeJob, Jobs, Places, invalid, live_applications};

/// A head with one node or two.
#[derive(Clone)]
pub(crate) struct FakeHead(Arc<Shared>);

struct Shared {
    folder: TempDir,
    places: Places,
    token: Token,
    content: ContentStore,
    secret: ApplicationSecret,
    jobs: Mutex<Jobs>,
    /// Counts changes of jobs.
    changed: watch::Sender<u64>,
    /// Submissions by their keys.
    keys: Mutex<Vec<(String, JobId)>>,
    /// So many runners of tasks run beside each other.
    most_runners: usize,
}

impl FakeHead {
    pub(crate) async fn start() -> FakeHead {
        FakeHead::with_runners(4).await
    }

    /// A head whose node has room for so many runners of tasks at a time.
    pub(crate) async fn with_runners(most_runners: usize) -> FakeHead {
        FakeHead::with(most_runners, None).await
    }

    /// A head with two nodes: one runs the coordinator of an application, the other one its children.
    pub(crate) async fn with_two_nodes() -> FakeHead {
        let free = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        FakeHead::with(4, Some(free.map(|listener| listener.local_addr().unwrap().port()))).await
    }

    async fn with(most_runners: usize, ports: Option<[u16; 2]>) -> FakeHead {
        let folder = tempfile::tempdir().unwrap();
        let identity = HeadIdentity::open_or_create(folder.path()).unwrap();
        let tokens = TokenStore::open(&folder.path().join("tokens"), identity.fingerprint()).unwrap();
        let token = tokens.create("ada", Role::Admin, None, Time::EPOCH).unwrap();
        let limits = StoreLimits { bytes: Bytes(1 << 30), files: 1_000 };
        let content = ContentStore::open(&folder.path().join("code"), StoreKind::Cache, limits).unwrap();
        let mut listener = Listener::bind("127.0.0.1:0", &identity, tokens).await.unwrap();
        let places = Places {
            head: listener.local_addr().to_string(),
            token: token.expose(),
            folder: folder.path().to_owned(),
            ports,
        };
        let head = FakeHead(Arc::new(Shared {
            folder,
            places,
            token,
            content,
            secret: ApplicationSecret([7; 32]),
            jobs: Mutex::default(),
            changed: watch::Sender::new(0),
            keys: Mutex::default(),
            most_runners,
        }));
        let service = head.clone();
        tokio::spawn(async move {
            loop {
                if let Incoming::Client(peer) = listener.accept().await {
                    tokio::spawn(peer.serve(service.clone()));
                }
            }
        });
        head
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.folder.path()
    }

    pub(crate) fn connect_options(&self) -> ConnectOptions {
        ConnectOptions { head: self.0.places.head.clone(), token: self.0.token.clone() }
    }

    pub(crate) fn places(&self) -> &Places {
        &self.0.places
    }

    /// Starts an application without a launcher; returns its root.
    pub(crate) fn launch(&self, program: &Path, arguments: &[&str]) -> JobId {
        self.0.places.install(program);
        let name = program.file_name().unwrap().to_str().unwrap().to_owned();
        let arguments = arguments.iter().map(|it| (*it).to_owned()).collect();
        let work = cohabit_client::types::ApplicationWork { program: name, arguments, max_gpus: Some(2) };
        self.add(self.spec("actors", Entrypoint::Application(work)))
    }

    /// Starts one more main in an application.
    pub(crate) fn join(&self, root: JobId, program: &Path, arguments: &[&str]) -> JobId {
        let work = RunnerWork {
            application: root.attempt(1),
            program: program.file_name().unwrap().to_str().unwrap().to_owned(),
            role: RunnerRole::Main,
            arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
            node: None,
            ranks: 1,
        };
        self.add(self.spec("joined", Entrypoint::Runner(work)))
    }

    fn spec(&self, name: &str, entrypoint: Entrypoint) -> JobSpec {
        let folder = self.folder().to_str().unwrap().to_owned();
        let manifest = ContentHash([1; 32]);
        JobSpec {
            name: name.to_owned(),
            entrypoint,
            demand: Demand { gpus: GpuRequest::Whole(0), ..Demand::default() },
            code: Some(CodeSnapshot { manifest, folder: folder.clone(), files: 1, bytes: Bytes(1) }),
            ..JobSpec::command(Vec::new(), folder)
        }
    }

    /// Takes a job in and starts it, if there is room.
    fn add(&self, spec: JobSpec) -> JobId {
        let id = {
            let mut jobs = self.jobs();
            let id = JobId::new(jobs.len() as u64 + 1);
            jobs.insert(id, FakeJob::new(id, spec));
            id
        };
        if self.jobs()[&id].is_of_tasks() {
            self.start_runners();
        } else {
            self.start_attempt(id);
        }
        id
    }

    /// Starts runners of tasks that wait, as far as there is room, in order.
    fn start_runners(&self) {
        loop {
            let next = {
                let jobs = self.jobs();
                let runners = jobs.values().filter(|job| job.is_of_tasks());
                let live = runners.clone().filter(|job| job.pid.is_some()).count();
                let mut waiting =
                    runners.filter(|job| job.record.attempt == 0 && !job.record.state.is_terminal());
                waiting.next().filter(|_| live < self.0.most_runners).map(|job| job.record.id)
            };
            match next {
                Some(id) => self.start_attempt(id),
                None => return,
            }
        }
    }

    fn start_attempt(&self, id: JobId) {
        let child = {
            let mut jobs = self.jobs();
            let job = jobs.get_mut(&id).unwrap();
            job.start(&self.0.places, self.0.secret)
        };
        self.tell();
        tokio::spawn(self.clone().attend(id, child));
    }

    /// Reads what a process prints, and sees to its end.
    async fn attend(self, id: JobId, mut child: Child) {
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        tokio::join!(self.read(id, LogStream::Stdout, out), self.read(id, LogStream::Stderr, err));
        let status = child.wait().await.unwrap();
        let (is_retried, is_root) = {
            let mut jobs = self.jobs();
            let job = jobs.get_mut(&id).unwrap();
            match job.record.state.is_terminal() {
                true => {
                    job.pid = None;
                    (false, false)
                }
                false => (job.exited(status), job.is_root()),
            }
        };
        if is_root && !is_retried {
            self.end_children(id);
        }
        self.tell();
        if is_retried {
            self.start_attempt(id);
        }
        self.start_runners();
    }

    async fn read(&self, id: JobId, stream: LogStream, mut from: impl AsyncRead + Unpin) {
        let mut bytes = vec![0; 8 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            self.jobs().get_mut(&id).unwrap().print(stream, &bytes[..count]);
            self.tell();
        }
    }

    fn end_children(&self, root: JobId) {
        let mut jobs = self.jobs();
        let live = jobs.values_mut().filter(|job| job.record.application == Some(root));
        live.filter(|job| !job.record.state.is_terminal()).for_each(FakeJob::end_with_application);
    }

    pub(crate) fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.0.jobs.lock().unwrap()
    }

    fn tell(&self) {
        self.0.changed.send_modify(|changes| *changes += 1);
    }

    /// Waits until this gives something.
    pub(crate) async fn until<T>(&self, mut look: impl FnMut(&Jobs) -> Option<T>) -> T {
        let mut changed = self.0.changed.subscribe();
        loop {
            changed.borrow_and_update();
            if let Some(found) = look(&self.jobs()) {
                return found;
            }
            changed.changed().await.unwrap();
        }
    }

    /// Waits for the end of a job.
    pub(crate) async fn ended(&self, id: JobId) -> JobRecord {
        self.until(|jobs| jobs.get(&id).map(|job| job.record.clone()).filter(|it| it.state.is_terminal()))
            .await
    }

    /// What a job printed to standard output and to standard error.
    pub(crate) fn printed(&self, id: JobId) -> (String, String) {
        let jobs = self.jobs();
        let job = &jobs[&id];
        (job.text(LogStream::Stdout), job.text(LogStream::Stderr))
    }

    fn records(&self, jobs: &[JobId]) -> Vec<JobRecord> {
        let known = self.jobs();
        jobs.iter().filter_map(|id| known.get(id)).map(|job| job.record.clone()).collect()
    }
}

/// The result of a call.
type Answer<T> = Result<T, Refusal>;

fn not_here<T>() -> Answer<T> {
    Err(Refusal::new(RefusalCode::Invalid, "the fake head knows applications only"))
}

impl FakeHead {
    fn submit_once(&self, spec: JobSpec, key: Option<String>) -> Result<JobId, Refusal> {
        invalid(spec.check())?;
        let wrong_state = |why: &str| Err(Refusal::new(RefusalCode::WrongState, why));
        {
            let keys = self.0.keys.lock().unwrap();
            if let Some((_, job)) = keys.iter().find(|(known, _)| Some(known) == key.as_ref()) {
                return Ok(*job);
            }
            let live = |job: &&FakeJob| !job.record.state.is_terminal();
            let jobs = self.jobs();
            match spec.entrypoint.parent() {
                None if jobs.values().filter(live).any(|it| it.is_root() && it.spec.name == spec.name) => {
                    return wrong_state("an application of this name is live");
                }
                Some(parent) if !jobs.get(&parent.job).is_some_and(|root| live(&root)) => {
                    return wrong_state("the application has ended");
                }
                None | Some(_) => {}
            }
        }
        self.unpack(&spec)?;
        let job = self.add(spec);
        self.0.keys.lock().unwrap().extend(key.map(|key| (key, job)));
        Ok(job)
    }

    /// Puts an uploaded program where its jobs find it.
    fn unpack(&self, spec: &JobSpec) -> Result<(), Refusal> {
        let manifest = spec.code.as_ref().unwrap().manifest;
        let places = &self.0.places;
        let folder = places.folder.join("programs");
        if folder.exists() {
            return Ok(());
        }
        let manifest = invalid(self.0.content.manifest(&manifest))?;
        invalid(cohabit_store::write_tree(&manifest, &self.0.content, &folder, Path::new(""), None))
    }

    fn change(&self, change: JobChange, id: JobId) -> ChangeResult {
        let mut jobs = self.jobs();
        let Some(job) = jobs.get_mut(&id) else {
            return ChangeResult::Refused(Refusal::new(RefusalCode::NotFound, "no such job"));
        };
        if job.record.state.is_terminal() {
            return ChangeResult::Already;
        }
        job.cancel();
        job.signal(if change == JobChange::Kill { Signal::SIGKILL } else { Signal::SIGTERM });
        ChangeResult::Done
    }
}

impl ClientService for FakeHead {
    async fn submit(self, _: Context, spec: Box<JobSpec>, key: Option<String>) -> Answer<SubmitReceipt> {
        Ok(SubmitReceipt { job: self.submit_once(*spec, key)?, members: 1, notes: Vec::new() })
    }

    async fn change_jobs(
        self,
        _: Context,
        change: JobChange,
        jobs: Vec<JobId>,
    ) -> Answer<Vec<(JobId, ChangeResult)>> {
        let results = jobs.into_iter().map(|job| (job, self.change(change, job))).collect();
        self.tell();
        Ok(results)
    }

    async fn applications(self, _: Context, _: ApplicationOwner) -> Answer<Vec<ApplicationRecord>> {
        Ok(live_applications(&self.jobs()))
    }

    async fn actors(self, _: Context, _: JobId) -> Answer<ActorListing> {
        not_here()
    }

    async fn tasks(self, _: Context, _: JobId) -> Answer<TaskListing> {
        not_here()
    }

    async fn objects(self, _: Context, _: JobId) -> Answer<ObjectListing> {
        not_here()
    }

    /// Nobody looks at its applications.
    async fn questions(self, _: Context) -> Answer<Vec<ApplicationQuestion>> {
        std::future::pending().await
    }

    async fn answer_question(self, _: Context, _: u64, _: Box<ApplicationAnswer>) -> Answer<()> {
        not_here()
    }

    async fn missing_content(self, _: Context, files: Vec<ContentHash>) -> Answer<Vec<ContentHash>> {
        Ok(self.0.content.missing(&files))
    }

    async fn put_content(self, _: Context, pieces: Vec<ContentPiece>) -> Answer<Vec<u64>> {
        invalid(self.0.content.put(&pieces))
    }

    async fn list(self, _: Context, filter: Filter) -> Answer<ListPage> {
        let after = filter.after.unwrap_or(JobId::new(0));
        let later: Vec<JobId> =
            self.jobs().range(after..).map(|(id, _)| *id).filter(|id| *id > after).collect();
        Ok(ListPage { jobs: self.records(&later), more: false })
    }

    async fn show(self, _: Context, jobs: Vec<JobId>) -> Answer<Vec<JobRecord>> {
        Ok(self.records(&jobs))
    }

    async fn watch(self, _: Context, known: Vec<JobRevision>) -> Answer<Vec<JobRecord>> {
        let changed = |jobs: &Jobs| {
            let news = known.iter().filter_map(|known| {
                let record = &jobs.get(&known.job)?.record;
                (record.revision != known.revision).then(|| record.clone())
            });
            Some(news.collect::<Vec<_>>()).filter(|news| !news.is_empty())
        };
        Ok(self.until(changed).await)
    }

    async fn read_log(self, _: Context, request: LogRequest) -> Answer<LogChunk> {
        let (LogPosition::Start | LogPosition::At(_)) = request.from else { return not_here() };
        let from = if let LogPosition::At(from) = request.from { from as usize } else { 0 };
        let id = request.rank.attempt.job;
        let chunk = |jobs: &Jobs| {
            let job = jobs.get(&id)?;
            let records = job.printed.get(from..).unwrap_or_default().to_vec();
            let complete = job.pid.is_none() && job.record.state.is_terminal();
            let is_due = complete || !records.is_empty() || request.at_end == FollowMode::Return;
            let next = (from + records.len()) as u64;
            is_due.then_some(LogChunk { records, next, dropped: 0, complete })
        };
        Ok(self.until(chunk).await)
    }

    async fn ping(self, _: Context) {}

    async fn update_jobs(
        self,
        _: Context,
        _: JobSettings,
        _: Vec<JobId>,
    ) -> Answer<Vec<(JobId, ChangeResult)>> {
        not_here()
    }

    async fn drain_node(self, _: Context, _: DrainRequest) -> Answer<String> {
        not_here()
    }

    async fn resume_node(self, _: Context, _: String) -> Answer<String> {
        not_here()
    }

    async fn unbind_node(self, _: Context, _: String) -> Answer<String> {
        not_here()
    }

    async fn refused_workers(self, _: Context) -> Answer<Vec<RefusedWorker>> {
        not_here()
    }

    async fn resolve(self, _: Context, _: Vec<JobRef>) -> Answer<Vec<JobId>> {
        not_here()
    }

    async fn read_code(self, _: Context, _: CodeRequest) -> Answer<ContentPiece> {
        not_here()
    }

    async fn explain(self, _: Context, _: JobId) -> Answer<Explanation> {
        not_here()
    }

    async fn dry_run(self, _: Context, _: Box<JobSpec>) -> Answer<Box<DryRun>> {
        not_here()
    }

    async fn nodes(self, _: Context) -> Answer<Vec<NodeRecord>> {
        not_here()
    }

    async fn create_token(self, _: Context, _: NewToken) -> Answer<IssuedToken> {
        not_here()
    }

    async fn list_tokens(self, _: Context) -> Answer<Vec<TokenRecord>> {
        not_here()
    }

    async fn revoke_token(self, _: Context, _: String) -> Answer<()> {
        not_here()
    }

    async fn list_models(self, _: Context) -> Answer<Models> {
        not_here()
    }

    async fn choose_model(self, _: Context, _: ModelChoice) -> Answer<Models> {
        not_here()
    }

    async fn own_token(self, _: Context) -> Answer<TokenRecord> {
        not_here()
    }

    async fn head_status(self, _: Context) -> Answer<HeadStatus> {
        not_here()
    }

    async fn head_problems(self, _: Context) -> Answer<Vec<String>> {
        not_here()
    }

    async fn job_updates(self, _: Context, _: Option<UpdateCursor>) -> Answer<JobUpdates> {
        not_here()
    }

    async fn feed(self, _: Context, _: Option<FeedCursor>) -> Answer<Feed> {
        not_here()
    }

    async fn shares(self, _: Context) -> Answer<Box<ShareReport>> {
        not_here()
    }

    async fn apply_shares(self, _: Context, _: Box<ShareTable>, _: bool) -> Answer<()> {
        not_here()
    }

    async fn reserve(self, _: Context, _: Box<ReservationRequest>) -> Answer<Box<NodeReservation>> {
        not_here()
    }

    async fn cancel_reservation(self, _: Context, _: u64) -> Answer<Box<NodeReservation>> {
        not_here()
    }

    async fn reservations(self, _: Context) -> Answer<Vec<NodeReservation>> {
        not_here()
    }

    async fn figures(self, _: Context) -> Answer<Box<Figures>> {
        not_here()
    }

    async fn usage_report(self, _: Context, _: UsageReportRequest) -> Answer<Box<UsageReport>> {
        not_here()
    }

    async fn usage(self, _: Context, _: Vec<JobId>) -> Answer<Vec<UsageRecord>> {
        not_here()
    }

    async fn start_exec(self, _: Context, _: Box<ExecRequest>) -> Answer<()> {
        not_here()
    }

    async fn read_exec(self, _: Context, _: ExecRead) -> Answer<ExecOutput> {
        not_here()
    }

    async fn end_exec(self, _: Context, _: ExecId) -> Answer<()> {
        not_here()
    }

    async fn open_forward(self, _: Context, _: ForwardRequest) -> Answer<()> {
        not_here()
    }

    async fn read_forward(self, _: Context, _: ForwardRead) -> Answer<ForwardOutput> {
        not_here()
    }

    async fn write_forward(self, _: Context, _: ForwardPiece) -> Answer<u64> {
        not_here()
    }

    async fn close_forward(self, _: Context, _: ForwardId) -> Answer<()> {
        not_here()
    }

    async fn start_copy(self, _: Context, _: Box<CopyRequest>) -> Answer<()> {
        not_here()
    }

    async fn read_copy(self, _: Context, _: CopyRead) -> Answer<CopyPiece> {
        not_here()
    }

    async fn end_copy(self, _: Context, _: CopyId) -> Answer<()> {
        not_here()
    }

    async fn write_input(self, _: Context, _: InputPiece) -> Answer<u64> {
        not_here()
    }

    async fn read_metrics(self, _: Context, _: RankId) -> Answer<MetricSeries> {
        not_here()
    }
}
