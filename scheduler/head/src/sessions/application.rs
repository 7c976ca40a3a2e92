//! The session of an application's coordinator: it submits runners of its attempt, follows them and ends
//! them, and answers what users ask about it.
//!
//! Everything else is refused, whatever the role of its user: the token lies in a process that runs on a
//! worker.

use std::sync::Arc;

use cohabit_net::{ClientService, Context};
use cohabit_types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, ApplicationQuestion, ApplicationRecord, AttemptId,
    ChangeResult, CodeRequest, ContentHash, ContentPiece, CopyId, CopyPiece, CopyRead, CopyRequest,
    DrainRequest, DryRun, Entrypoint, ExecId, ExecOutput, ExecRead, ExecRequest, Explanation, Feed,
    FeedCursor, Figures, Filter, ForwardId, ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest,
    HeadStatus, InputPiece, IssuedToken, JobChange, JobId, JobRecord, JobRef, JobRevision, JobSettings,
    JobSpec, JobUpdates, ListPage, LogChunk, LogRequest, MetricSeries, ModelChoice, Models, NewToken,
    NodeRecord, NodeReservation, ObjectListing, Principal, RankId, Refusal, RefusalCode, RefusedWorker,
    ReservationRequest, ShareReport, ShareTable, SubmitReceipt, TaskListing, TokenRecord, UpdateCursor,
    UsageRecord, UsageReport, UsageReportRequest,
};

use tokio::time::Instant;

use super::client::ClientSession;
use super::context::SessionContext;
use crate::driver::Query;

/// The coordinator of one attempt of an application.
#[derive(Clone)]
pub(super) struct ApplicationSession {
    application: AttemptId,
    client: ClientSession,
}

impl ApplicationSession {
    pub(super) fn new(
        application: AttemptId,
        by: Principal,
        session_context: Arc<SessionContext>,
    ) -> ApplicationSession {
        ApplicationSession { application, client: ClientSession::new(by, session_context) }
    }

    /// The refusal of everything that a coordinator does not need.
    fn refusal<T>(&self, what: &str) -> Result<T, Refusal> {
        let message = format!(
            "the token of application {} is for its own runners only: use a user's token to {what}",
            self.application.job
        );
        Err(Refusal::new(RefusalCode::NotAllowed, message))
    }

    /// Refuses jobs that are neither the application itself nor its runners.
    async fn check_own(&self, jobs: Vec<JobId>) -> Result<(), Refusal> {
        let others: Vec<JobId> = jobs.into_iter().filter(|job| *job != self.application.job).collect();
        if others.is_empty() {
            return Ok(());
        }
        let application = self.application;
        let stranger = self.client.ask(|reply_to| Query::NoChild(application, others, reply_to)).await?;
        match stranger {
            None => Ok(()),
            Some(job) => self.refusal(&format!("ask about job {job}, or change it")),
        }
    }
}

impl ClientService for ApplicationSession {
    async fn submit(
        self,
        context: Context,
        spec: Box<JobSpec>,
        idempotency_key: Option<String>,
    ) -> Result<SubmitReceipt, Refusal> {
        match &spec.entrypoint {
            Entrypoint::Runner(work) if work.application == self.application => {
                self.client.submit(context, spec, idempotency_key).await
            }
            Entrypoint::Command(_) | Entrypoint::Application(_) | Entrypoint::Runner(_) => {
                self.refusal("submit other jobs")
            }
        }
    }

    async fn change_jobs(
        self,
        context: Context,
        change: JobChange,
        jobs: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        match change {
            JobChange::Cancel | JobChange::Kill | JobChange::Withdraw => {}
            JobChange::Hold | JobChange::Release | JobChange::Requeue => {
                return self.refusal(&format!("{} jobs", change.verb()));
            }
        }
        self.check_own(jobs.clone()).await?;
        self.client.change_jobs(context, change, jobs).await
    }

    async fn show(self, context: Context, jobs: Vec<JobId>) -> Result<Vec<JobRecord>, Refusal> {
        self.check_own(jobs.clone()).await?;
        self.client.show(context, jobs).await
    }

    async fn watch(self, context: Context, known: Vec<JobRevision>) -> Result<Vec<JobRecord>, Refusal> {
        self.check_own(known.iter().map(|it| it.job).collect()).await?;
        self.client.watch(context, known).await
    }

    async fn explain(self, context: Context, job: JobId) -> Result<Explanation, Refusal> {
        self.check_own(vec![job]).await?;
        self.client.explain(context, job).await
    }

    async fn ping(self, context: Context) {
        self.client.ping(context).await;
    }

    async fn update_jobs(
        self,
        _: Context,
        _: JobSettings,
        _: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        self.refusal("update jobs")
    }

    async fn drain_node(self, _: Context, _: DrainRequest) -> Result<String, Refusal> {
        self.refusal("drain a node")
    }

    async fn resume_node(self, _: Context, _: String) -> Result<String, Refusal> {
        self.refusal("resume a node")
    }

    async fn unbind_node(self, _: Context, _: String) -> Result<String, Refusal> {
        self.refusal("unbind a node")
    }

    async fn refused_workers(self, _: Context) -> Result<Vec<RefusedWorker>, Refusal> {
        self.refusal("list refused workers")
    }

    async fn resolve(self, _: Context, _: Vec<JobRef>) -> Result<Vec<JobId>, Refusal> {
        self.refusal("look up jobs")
    }

    async fn questions(self, _: Context) -> Result<Vec<ApplicationQuestion>, Refusal> {
        let context = &self.client.session_context;
        let limit = Instant::now() + context.watch_limit;
        Ok(context.application_questions.next(self.application, limit).await)
    }

    async fn answer_question(
        self,
        _: Context,
        number: u64,
        answer: Box<ApplicationAnswer>,
    ) -> Result<(), Refusal> {
        self.client.session_context.application_questions.answer(self.application, number, *answer)
    }

    async fn applications(self, _: Context, _: ApplicationOwner) -> Result<Vec<ApplicationRecord>, Refusal> {
        self.refusal("list applications")
    }

    async fn actors(self, _: Context, _: JobId) -> Result<ActorListing, Refusal> {
        self.refusal("look at an application")
    }

    async fn tasks(self, _: Context, _: JobId) -> Result<TaskListing, Refusal> {
        self.refusal("look at an application")
    }

    async fn objects(self, _: Context, _: JobId) -> Result<ObjectListing, Refusal> {
        self.refusal("look at an application")
    }

    async fn missing_content(self, _: Context, _: Vec<ContentHash>) -> Result<Vec<ContentHash>, Refusal> {
        self.refusal("store code")
    }

    async fn put_content(self, _: Context, _: Vec<ContentPiece>) -> Result<Vec<u64>, Refusal> {
        self.refusal("store code")
    }

    async fn read_code(self, _: Context, _: CodeRequest) -> Result<ContentPiece, Refusal> {
        self.refusal("read code")
    }

    async fn list(self, _: Context, _: Filter) -> Result<ListPage, Refusal> {
        self.refusal("list jobs")
    }

    async fn dry_run(self, _: Context, _: Box<JobSpec>) -> Result<Box<DryRun>, Refusal> {
        self.refusal("try a job")
    }

    async fn nodes(self, _: Context) -> Result<Vec<NodeRecord>, Refusal> {
        self.refusal("list nodes")
    }

    async fn read_log(self, _: Context, _: LogRequest) -> Result<LogChunk, Refusal> {
        self.refusal("read logs")
    }

    async fn create_token(self, _: Context, _: NewToken) -> Result<IssuedToken, Refusal> {
        self.refusal("create a token")
    }

    async fn list_tokens(self, _: Context) -> Result<Vec<TokenRecord>, Refusal> {
        self.refusal("list tokens")
    }

    async fn revoke_token(self, _: Context, _: String) -> Result<(), Refusal> {
        self.refusal("revoke a token")
    }

    async fn list_models(self, _: Context) -> Result<Models, Refusal> {
        self.refusal("list models")
    }

    async fn choose_model(self, _: Context, _: ModelChoice) -> Result<Models, Refusal> {
        self.refusal("choose a model")
    }

    async fn own_token(self, _: Context) -> Result<TokenRecord, Refusal> {
        self.refusal("ask about a token")
    }

    async fn head_status(self, _: Context) -> Result<HeadStatus, Refusal> {
        self.refusal("ask about the head")
    }

    async fn head_problems(self, _: Context) -> Result<Vec<String>, Refusal> {
        self.refusal("ask about the head")
    }

    async fn job_updates(self, _: Context, _: Option<UpdateCursor>) -> Result<JobUpdates, Refusal> {
        self.refusal("follow all jobs")
    }

    async fn feed(self, _: Context, _: Option<FeedCursor>) -> Result<Feed, Refusal> {
        self.refusal("follow the feed")
    }

    async fn shares(self, _: Context) -> Result<Box<ShareReport>, Refusal> {
        self.refusal("see shares of the cluster")
    }

    async fn apply_shares(self, _: Context, _: Box<ShareTable>, _: bool) -> Result<(), Refusal> {
        self.refusal("change shares of the cluster")
    }

    async fn reserve(self, _: Context, _: Box<ReservationRequest>) -> Result<Box<NodeReservation>, Refusal> {
        self.refusal("reserve nodes")
    }

    async fn cancel_reservation(self, _: Context, _: u64) -> Result<Box<NodeReservation>, Refusal> {
        self.refusal("cancel reservations")
    }

    async fn reservations(self, _: Context) -> Result<Vec<NodeReservation>, Refusal> {
        self.refusal("see reservations")
    }

    async fn figures(self, _: Context) -> Result<Box<Figures>, Refusal> {
        self.refusal("see figures of the cluster")
    }

    async fn usage_report(self, _: Context, _: UsageReportRequest) -> Result<Box<UsageReport>, Refusal> {
        self.refusal("see reports on users and projects")
    }

    async fn usage(self, _: Context, _: Vec<JobId>) -> Result<Vec<UsageRecord>, Refusal> {
        self.refusal("see what jobs did with their GPUs")
    }

    async fn start_exec(self, _: Context, _: Box<ExecRequest>) -> Result<(), Refusal> {
        self.refusal("start a process beside a job")
    }

    async fn read_exec(self, _: Context, _: ExecRead) -> Result<ExecOutput, Refusal> {
        self.refusal("start a process beside a job")
    }

    async fn end_exec(self, _: Context, _: ExecId) -> Result<(), Refusal> {
        self.refusal("start a process beside a job")
    }

    async fn open_forward(self, _: Context, _: ForwardRequest) -> Result<(), Refusal> {
        self.refusal("connect to ports of a job")
    }

    async fn read_forward(self, _: Context, _: ForwardRead) -> Result<ForwardOutput, Refusal> {
        self.refusal("connect to ports of a job")
    }

    async fn write_forward(self, _: Context, _: ForwardPiece) -> Result<u64, Refusal> {
        self.refusal("connect to ports of a job")
    }

    async fn close_forward(self, _: Context, _: ForwardId) -> Result<(), Refusal> {
        self.refusal("connect to ports of a job")
    }

    async fn start_copy(self, _: Context, _: Box<CopyRequest>) -> Result<(), Refusal> {
        self.refusal("copy files of a job")
    }

    async fn read_copy(self, _: Context, _: CopyRead) -> Result<CopyPiece, Refusal> {
        self.refusal("copy files of a job")
    }

    async fn end_copy(self, _: Context, _: CopyId) -> Result<(), Refusal> {
        self.refusal("copy files of a job")
    }

    async fn write_input(self, _: Context, _: InputPiece) -> Result<u64, Refusal> {
        self.refusal("send input")
    }

    async fn read_metrics(self, _: Context, _: RankId) -> Result<MetricSeries, Refusal> {
        self.refusal("read metrics")
    }
}
