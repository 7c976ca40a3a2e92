//! The session of a viewer: a wall screen, an exporter of figures, or somebody who only looks. It reads jobs,
//! nodes and models; everything else is refused, and a call that is new has to be decided on here.
//!
//! What jobs run and how they ended is left out of the answers in `privacy`.

use std::sync::Arc;

use cohabit_net::{ClientService, Context};
use cohabit_types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, ApplicationQuestion, ApplicationRecord, ChangeResult,
    CodeRequest, ContentHash, ContentPiece, CopyId, CopyPiece, CopyRead, CopyRequest, DrainRequest, DryRun,
    ExecId, ExecOutput, ExecRead, ExecRequest, Explanation, Feed, FeedCursor, Figures, Filter, ForwardId,
    ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest, HeadStatus, InputPiece, IssuedToken, JobChange,
    JobId, JobRecord, JobRef, JobRevision, JobSettings, JobSpec, JobUpdates, ListPage, LogChunk, LogRequest,
    MetricSeries, ModelChoice, Models, NewToken, NodeRecord, NodeReservation, ObjectListing, Principal,
    RankId, Refusal, RefusalCode, RefusedWorker, ReservationRequest, ShareReport, ShareTable, SubmitReceipt,
    TaskListing, TokenRecord, UpdateCursor, UsageRecord, UsageReport, UsageReportRequest,
};

use super::client::ClientSession;
use super::context::SessionContext;

/// The roles of tokens that may do what a viewer may not.
const USER: &str = "user";
const ADMIN: &str = "admin";

/// One viewer.
#[derive(Clone)]
pub(super) struct ViewerSession(ClientSession);

impl ViewerSession {
    pub(super) fn new(by: Principal, session_context: Arc<SessionContext>) -> ViewerSession {
        ViewerSession(ClientSession::new(by, session_context))
    }

    /// The refusal of what a viewer may not do; `what` follows "cannot", and `role` can.
    fn refusal<T>(&self, what: &str, role: &str) -> Result<T, Refusal> {
        let user = &self.0.by.user;
        let message = format!(
            "the token of {user} has the role viewer, which cannot {what}: use a token with the role {role} \
             (`cohabit token create --role {role}`)"
        );
        Err(Refusal::new(RefusalCode::NotAllowed, message))
    }
}

impl ClientService for ViewerSession {
    async fn submit(self, _: Context, _: Box<JobSpec>, _: Option<String>) -> Result<SubmitReceipt, Refusal> {
        self.refusal("submit jobs", USER)
    }

    async fn change_jobs(
        self,
        _: Context,
        _: JobChange,
        _: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        self.refusal("change jobs", USER)
    }

    async fn update_jobs(
        self,
        _: Context,
        _: JobSettings,
        _: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        self.refusal("update jobs", USER)
    }

    async fn drain_node(self, _: Context, _: DrainRequest) -> Result<String, Refusal> {
        self.refusal("drain a node", ADMIN)
    }

    async fn resume_node(self, _: Context, _: String) -> Result<String, Refusal> {
        self.refusal("resume a node", ADMIN)
    }

    async fn unbind_node(self, _: Context, _: String) -> Result<String, Refusal> {
        self.refusal("unbind a node", ADMIN)
    }

    async fn refused_workers(self, _: Context) -> Result<Vec<RefusedWorker>, Refusal> {
        self.refusal("list refused workers", ADMIN)
    }

    async fn resolve(self, context: Context, references: Vec<JobRef>) -> Result<Vec<JobId>, Refusal> {
        self.0.resolve(context, references).await
    }

    async fn applications(
        self,
        context: Context,
        owner: ApplicationOwner,
    ) -> Result<Vec<ApplicationRecord>, Refusal> {
        self.0.applications(context, owner).await
    }

    async fn actors(self, _: Context, _: JobId) -> Result<ActorListing, Refusal> {
        self.refusal("list actors", USER)
    }

    async fn tasks(self, _: Context, _: JobId) -> Result<TaskListing, Refusal> {
        self.refusal("list tasks", USER)
    }

    async fn objects(self, _: Context, _: JobId) -> Result<ObjectListing, Refusal> {
        self.refusal("list objects", USER)
    }

    async fn questions(self, _: Context) -> Result<Vec<ApplicationQuestion>, Refusal> {
        self.refusal("ask for questions", USER)
    }

    async fn answer_question(self, _: Context, _: u64, _: Box<ApplicationAnswer>) -> Result<(), Refusal> {
        self.refusal("answer a question", USER)
    }

    async fn missing_content(self, _: Context, _: Vec<ContentHash>) -> Result<Vec<ContentHash>, Refusal> {
        self.refusal("store code", USER)
    }

    async fn put_content(self, _: Context, _: Vec<ContentPiece>) -> Result<Vec<u64>, Refusal> {
        self.refusal("store code", USER)
    }

    async fn read_code(self, _: Context, _: CodeRequest) -> Result<ContentPiece, Refusal> {
        self.refusal("read code", USER)
    }

    async fn list(self, context: Context, filter: Filter) -> Result<ListPage, Refusal> {
        self.0.list(context, filter).await
    }

    async fn show(self, context: Context, jobs: Vec<JobId>) -> Result<Vec<JobRecord>, Refusal> {
        self.0.show(context, jobs).await
    }

    async fn explain(self, context: Context, job: JobId) -> Result<Explanation, Refusal> {
        self.0.explain(context, job).await
    }

    async fn dry_run(self, _: Context, _: Box<JobSpec>) -> Result<Box<DryRun>, Refusal> {
        self.refusal("try where a job would run", USER)
    }

    async fn shares(self, context: Context) -> Result<Box<ShareReport>, Refusal> {
        self.0.shares(context).await
    }

    async fn apply_shares(self, _: Context, _: Box<ShareTable>, _: bool) -> Result<(), Refusal> {
        self.refusal("change shares of the cluster", ADMIN)
    }

    async fn reserve(self, _: Context, _: Box<ReservationRequest>) -> Result<Box<NodeReservation>, Refusal> {
        self.refusal("reserve nodes", ADMIN)
    }

    async fn cancel_reservation(self, _: Context, _: u64) -> Result<Box<NodeReservation>, Refusal> {
        self.refusal("cancel reservations", ADMIN)
    }

    async fn reservations(self, context: Context) -> Result<Vec<NodeReservation>, Refusal> {
        self.0.reservations(context).await
    }

    async fn figures(self, context: Context) -> Result<Box<Figures>, Refusal> {
        self.0.figures(context).await
    }

    async fn usage_report(
        self,
        context: Context,
        request: UsageReportRequest,
    ) -> Result<Box<UsageReport>, Refusal> {
        self.0.usage_report(context, request).await
    }

    async fn usage(self, context: Context, jobs: Vec<JobId>) -> Result<Vec<UsageRecord>, Refusal> {
        self.0.usage(context, jobs).await
    }

    async fn nodes(self, context: Context) -> Result<Vec<NodeRecord>, Refusal> {
        self.0.nodes(context).await
    }

    async fn watch(self, context: Context, known: Vec<JobRevision>) -> Result<Vec<JobRecord>, Refusal> {
        self.0.watch(context, known).await
    }

    async fn read_log(self, _: Context, _: LogRequest) -> Result<LogChunk, Refusal> {
        self.refusal("read output", USER)
    }

    async fn create_token(self, _: Context, _: NewToken) -> Result<IssuedToken, Refusal> {
        self.refusal("create a token", ADMIN)
    }

    async fn list_tokens(self, _: Context) -> Result<Vec<TokenRecord>, Refusal> {
        self.refusal("list tokens", ADMIN)
    }

    async fn revoke_token(self, _: Context, _: String) -> Result<(), Refusal> {
        self.refusal("revoke a token", ADMIN)
    }

    async fn list_models(self, context: Context) -> Result<Models, Refusal> {
        self.0.list_models(context).await
    }

    async fn choose_model(self, _: Context, _: ModelChoice) -> Result<Models, Refusal> {
        self.refusal("choose a model", ADMIN)
    }

    async fn ping(self, context: Context) {
        self.0.ping(context).await;
    }

    async fn own_token(self, context: Context) -> Result<TokenRecord, Refusal> {
        self.0.own_token(context).await
    }

    async fn head_status(self, _: Context) -> Result<HeadStatus, Refusal> {
        self.refusal("see how the head is set up", ADMIN)
    }

    async fn head_problems(self, context: Context) -> Result<Vec<String>, Refusal> {
        self.0.head_problems(context).await
    }

    async fn job_updates(self, context: Context, after: Option<UpdateCursor>) -> Result<JobUpdates, Refusal> {
        self.0.job_updates(context, after).await
    }

    async fn feed(self, _: Context, _: Option<FeedCursor>) -> Result<Feed, Refusal> {
        self.refusal("follow what happens to jobs", USER)
    }

    async fn start_exec(self, _: Context, _: Box<ExecRequest>) -> Result<(), Refusal> {
        self.refusal("start a process beside a job", USER)
    }

    async fn read_exec(self, _: Context, _: ExecRead) -> Result<ExecOutput, Refusal> {
        self.refusal("start a process beside a job", USER)
    }

    async fn end_exec(self, _: Context, _: ExecId) -> Result<(), Refusal> {
        self.refusal("start a process beside a job", USER)
    }

    async fn open_forward(self, _: Context, _: ForwardRequest) -> Result<(), Refusal> {
        self.refusal("connect to ports of a job", USER)
    }

    async fn read_forward(self, _: Context, _: ForwardRead) -> Result<ForwardOutput, Refusal> {
        self.refusal("connect to ports of a job", USER)
    }

    async fn write_forward(self, _: Context, _: ForwardPiece) -> Result<u64, Refusal> {
        self.refusal("connect to ports of a job", USER)
    }

    async fn close_forward(self, _: Context, _: ForwardId) -> Result<(), Refusal> {
        self.refusal("connect to ports of a job", USER)
    }

    async fn start_copy(self, _: Context, _: Box<CopyRequest>) -> Result<(), Refusal> {
        self.refusal("copy files of a job", USER)
    }

    async fn read_copy(self, _: Context, _: CopyRead) -> Result<CopyPiece, Refusal> {
        self.refusal("copy files of a job", USER)
    }

    async fn end_copy(self, _: Context, _: CopyId) -> Result<(), Refusal> {
        self.refusal("copy files of a job", USER)
    }

    async fn write_input(self, _: Context, _: InputPiece) -> Result<u64, Refusal> {
        self.refusal("send input to a job", USER)
    }

    async fn read_metrics(self, _: Context, _: RankId) -> Result<MetricSeries, Refusal> {
        self.refusal("read metrics", USER)
    }
}
