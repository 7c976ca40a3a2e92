//! A client's session: its changes, its queries, and the logs that it reads.
//!
//! A change goes on when its client hangs up: a client that asks again with the same idempotency key gets the
//! answer. What a client may do is the core's rule, by the name and role of its token. Queries are answered
//! in `lookup`, as far as `privacy` lets the client see the answer; changes of jobs and nodes in `changes`.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_actor::AskError;
use cohabit_net::{ClientService, Context};
use cohabit_types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, ApplicationQuestion, ApplicationRecord, ChangeResult,
    CodeRequest, ContentHash, ContentPiece, CopyId, CopyPiece, CopyRead, CopyRequest, DrainRequest, DryRun,
    ExecId, ExecOutput, ExecRead, ExecRequest, Explanation, Feed, FeedCursor, Figures, Filter, ForwardId,
    ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest, HeadStatus, InputPiece, IssuedToken, JobChange,
    JobId, JobRecord, JobRef, JobRevision, JobSettings, JobSpec, JobUpdates, ListPage, LogChunk, LogRequest,
    MetricSeries, ModelChoice, Models, NewToken, NodeRecord, NodeReservation, ObjectListing, Principal,
    RankId, Refusal, RefusalCode, RefusedWorker, Request, ReservationRequest, ShareReport, ShareTable,
    SubmitReceipt, TaskListing, TokenRecord, UpdateCursor, UsageRecord, UsageReport, UsageReportRequest,
};
use tokio::time::{Instant, timeout_at};

use super::context::SessionContext;
use super::forward_routes::ForwardRoutes;
use super::{status, tokens};
use crate::driver::{Message, Query};
use crate::request_limits::check_count;

/// One client.
#[derive(Clone)]
pub(super) struct ClientSession {
    pub(super) by: Principal,
    pub(super) session_context: Arc<SessionContext>,
    /// Where pieces of connections go.
    pub(super) routes: Arc<ForwardRoutes>,
}

impl ClientSession {
    pub(super) fn new(by: Principal, session_context: Arc<SessionContext>) -> ClientSession {
        ClientSession { by, session_context, routes: Arc::default() }
    }

    /// Waits until one of the jobs is no longer as the client knows it, or the limit comes.
    async fn wait_for_change(&self, known: Vec<JobRevision>) -> Result<Vec<JobRecord>, Refusal> {
        check_count(known.len())?;
        let known: BTreeMap<JobId, JobRevision> = known.into_iter().map(|it| (it.job, it)).collect();
        let known: Vec<JobRevision> = known.into_values().collect();
        let limit = Instant::now() + self.session_context.watch_limit;
        // Before the first look: no change falls between the two.
        let watch = self.session_context.watchers.watch(known.iter().map(|it| it.job).collect());
        loop {
            let changed = self.changed_since(known.clone()).await?;
            if !changed.is_empty() || timeout_at(limit, watch.changed()).await.is_err() {
                return Ok(changed);
            }
        }
    }

    async fn models(&self, choice: Option<ModelChoice>) -> Result<Models, Refusal> {
        let by = self.by.clone();
        let asked = self.session_context.driver.ask(|reply_to| Message::Models { by, choice, reply_to });
        asked.await.map_err(|error| ending(&error))?
    }
}

impl ClientService for ClientSession {
    async fn submit(
        self,
        _: Context,
        spec: Box<JobSpec>,
        idempotency_key: Option<String>,
    ) -> Result<SubmitReceipt, Refusal> {
        self.submit_job(*spec, idempotency_key).await
    }

    async fn change_jobs(
        self,
        _: Context,
        change: JobChange,
        jobs: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        self.apply_to_jobs(change, jobs).await
    }

    async fn update_jobs(
        self,
        _: Context,
        update: JobSettings,
        jobs: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal> {
        self.update(update, jobs).await
    }

    async fn drain_node(self, _: Context, drain: DrainRequest) -> Result<String, Refusal> {
        self.drain(drain).await
    }

    async fn resume_node(self, _: Context, name: String) -> Result<String, Refusal> {
        self.resume(name).await
    }

    async fn unbind_node(self, _: Context, name: String) -> Result<String, Refusal> {
        self.unbind(name).await
    }

    async fn refused_workers(self, _: Context) -> Result<Vec<RefusedWorker>, Refusal> {
        ClientSession::refused_workers(&self)
    }

    async fn resolve(self, _: Context, references: Vec<JobRef>) -> Result<Vec<JobId>, Refusal> {
        self.look_up_references(references).await
    }

    async fn applications(
        self,
        _: Context,
        owner: ApplicationOwner,
    ) -> Result<Vec<ApplicationRecord>, Refusal> {
        self.live_applications(owner).await
    }

    async fn actors(self, _: Context, application: JobId) -> Result<ActorListing, Refusal> {
        self.actors_of(application).await
    }

    async fn tasks(self, _: Context, application: JobId) -> Result<TaskListing, Refusal> {
        self.tasks_of(application).await
    }

    async fn objects(self, _: Context, application: JobId) -> Result<ObjectListing, Refusal> {
        self.objects_of(application).await
    }

    async fn questions(self, _: Context) -> Result<Vec<ApplicationQuestion>, Refusal> {
        Err(only_for_coordinators())
    }

    async fn answer_question(self, _: Context, _: u64, _: Box<ApplicationAnswer>) -> Result<(), Refusal> {
        Err(only_for_coordinators())
    }

    async fn missing_content(self, _: Context, files: Vec<ContentHash>) -> Result<Vec<ContentHash>, Refusal> {
        self.missing_code(files).await
    }

    async fn put_content(self, _: Context, pieces: Vec<ContentPiece>) -> Result<Vec<u64>, Refusal> {
        self.put_code(pieces).await
    }

    async fn read_code(self, _: Context, request: CodeRequest) -> Result<ContentPiece, Refusal> {
        self.read_code_of(request).await
    }

    async fn list(self, _: Context, filter: Filter) -> Result<ListPage, Refusal> {
        self.visible_page(filter).await
    }

    async fn show(self, _: Context, jobs: Vec<JobId>) -> Result<Vec<JobRecord>, Refusal> {
        let records = self.look_up_records(jobs).await?;
        Ok(self.visible_records(records))
    }

    async fn explain(self, _: Context, job: JobId) -> Result<Explanation, Refusal> {
        self.visible_explanation(job).await
    }

    async fn dry_run(self, _: Context, spec: Box<JobSpec>) -> Result<Box<DryRun>, Refusal> {
        self.session_context.limits.check_job(&spec)?;
        let by = self.by.clone();
        let permit = self.query_permit().await;
        let asked = self.session_context.driver.ask(|reply_to| Message::DryRun { by, spec, reply_to });
        let dry_run = asked.await.map_err(|error| ending(&error))??;
        drop(permit);
        self.visible_dry_run(dry_run).await
    }

    async fn nodes(self, _: Context) -> Result<Vec<NodeRecord>, Refusal> {
        self.ask(Query::Nodes).await
    }

    async fn watch(self, _: Context, known: Vec<JobRevision>) -> Result<Vec<JobRecord>, Refusal> {
        let changed = self.wait_for_change(known).await?;
        Ok(self.visible_records(changed))
    }

    async fn read_log(self, _: Context, request: LogRequest) -> Result<LogChunk, Refusal> {
        self.find_log(request).await
    }

    async fn create_token(self, _: Context, token: NewToken) -> Result<IssuedToken, Refusal> {
        let context = &self.session_context;
        tokens::create(&self.by, context.tokens.clone(), context.user_token_lifetime, token).await
    }

    async fn list_tokens(self, _: Context) -> Result<Vec<TokenRecord>, Refusal> {
        tokens::list(&self.by, &self.session_context.tokens)
    }

    async fn revoke_token(self, _: Context, name: String) -> Result<(), Refusal> {
        tokens::revoke(&self.by, self.session_context.tokens.clone(), name).await
    }

    async fn list_models(self, _: Context) -> Result<Models, Refusal> {
        self.models(None).await
    }

    async fn choose_model(self, _: Context, choice: ModelChoice) -> Result<Models, Refusal> {
        self.models(Some(choice)).await
    }

    async fn ping(self, _: Context) {}

    async fn own_token(self, _: Context) -> Result<TokenRecord, Refusal> {
        tokens::own(&self.by, &self.session_context.tokens)
    }

    async fn head_status(self, _: Context) -> Result<HeadStatus, Refusal> {
        status::status(&self.by, &self.session_context).await
    }

    async fn head_problems(self, _: Context) -> Result<Vec<String>, Refusal> {
        self.ask(Query::Problems).await
    }

    async fn job_updates(self, _: Context, after: Option<UpdateCursor>) -> Result<JobUpdates, Refusal> {
        let updates = self.look_up_updates(after).await?;
        Ok(JobUpdates { jobs: self.visible_records(updates.jobs), ..updates })
    }

    async fn feed(self, _: Context, after: Option<FeedCursor>) -> Result<Feed, Refusal> {
        self.follow_feed(after).await
    }

    async fn shares(self, _: Context) -> Result<Box<ShareReport>, Refusal> {
        Ok(Box::new(self.ask(Query::Shares).await?))
    }

    async fn apply_shares(self, _: Context, table: Box<ShareTable>, dry_run: bool) -> Result<(), Refusal> {
        if dry_run {
            let by = self.by.clone();
            return self.ask(|reply_to| Query::CheckShares(by, table, reply_to)).await?;
        }
        self.apply_share_table(*table).await
    }

    async fn reserve(
        self,
        _: Context,
        request: Box<ReservationRequest>,
    ) -> Result<Box<NodeReservation>, Refusal> {
        self.change_reservation(Request::Reserve(request)).await
    }

    async fn cancel_reservation(self, _: Context, number: u64) -> Result<Box<NodeReservation>, Refusal> {
        self.change_reservation(Request::CancelReservation(number)).await
    }

    async fn reservations(self, _: Context) -> Result<Vec<NodeReservation>, Refusal> {
        self.ask(Query::Reservations).await
    }

    async fn figures(self, _: Context) -> Result<Box<Figures>, Refusal> {
        Ok(Box::new(self.visible_figures().await?))
    }

    async fn usage_report(
        self,
        _: Context,
        request: UsageReportRequest,
    ) -> Result<Box<UsageReport>, Refusal> {
        Ok(Box::new(self.visible_report(request).await?))
    }

    async fn usage(self, _: Context, jobs: Vec<JobId>) -> Result<Vec<UsageRecord>, Refusal> {
        self.visible_usage(jobs).await
    }

    async fn start_exec(self, _: Context, request: Box<ExecRequest>) -> Result<(), Refusal> {
        self.pass_exec(request).await
    }

    async fn read_exec(self, _: Context, read: ExecRead) -> Result<ExecOutput, Refusal> {
        self.find_exec_output(read).await
    }

    async fn end_exec(self, _: Context, process: ExecId) -> Result<(), Refusal> {
        self.pass_exec_end(process).await
    }

    async fn open_forward(self, _: Context, request: ForwardRequest) -> Result<(), Refusal> {
        self.pass_forward(request).await
    }

    async fn read_forward(self, _: Context, read: ForwardRead) -> Result<ForwardOutput, Refusal> {
        self.find_forward_output(read).await
    }

    async fn write_forward(self, _: Context, piece: ForwardPiece) -> Result<u64, Refusal> {
        self.pass_forward_piece(piece).await
    }

    async fn close_forward(self, _: Context, connection: ForwardId) -> Result<(), Refusal> {
        self.pass_forward_end(connection).await
    }

    async fn start_copy(self, _: Context, request: Box<CopyRequest>) -> Result<(), Refusal> {
        self.pass_copy(*request).await
    }

    async fn read_copy(self, _: Context, read: CopyRead) -> Result<CopyPiece, Refusal> {
        self.find_copy_piece(read).await
    }

    async fn end_copy(self, _: Context, copy: CopyId) -> Result<(), Refusal> {
        self.pass_copy_end(copy).await
    }

    async fn write_input(self, _: Context, piece: InputPiece) -> Result<u64, Refusal> {
        self.pass_input(piece).await
    }

    async fn read_metrics(self, _: Context, rank: RankId) -> Result<MetricSeries, Refusal> {
        self.find_metrics(rank).await
    }
}

fn only_for_coordinators() -> Refusal {
    Refusal::new(RefusalCode::NotAllowed, "only the coordinator of an application answers questions about it")
}

/// The refusal when the driver is gone.
pub(super) fn ending(error: &AskError) -> Refusal {
    let message = format!("the head is stopping ({error}): try again when it is back");
    Refusal::new(RefusalCode::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use cohabit_actor::{Address, mailbox};
    use cohabit_net::NodeCredentials;
    use cohabit_net::{HeadIdentity, TokenStore, context_for};
    use cohabit_types::{PrivateData, Request, Role, Span};
    use futures::FutureExt;

    use super::super::answer_pacer::AnswerPacer;
    use super::super::forward_limits::ForwardLimits;
    use super::super::status::HeadSetup;
    use super::super::user_limiter::UserLimiter;
    use super::*;
    use crate::RequestLimits;
    use crate::application_questions::ApplicationQuestions;
    use crate::code_store::CodeStores;
    use crate::history::HistoryReader;
    use crate::rates::SharedRates;
    use crate::test_kit::{ada, submit};
    use crate::update_log::UpdateLog;
    use crate::watchers::Watchers;

    /// What a session needs, with this driver; its files are in this directory.
    fn session_context(folder: &Path, driver: Address<Message>) -> Arc<SessionContext> {
        let identity = HeadIdentity::open_or_create(&folder.join("tls")).unwrap();
        Arc::new(SessionContext {
            checkpoint_directory: None,
            checkpoint_limit: cohabit_types::Bytes(1 << 20),
            driver,
            watchers: Watchers::default(),
            updates: UpdateLog::default(),
            history: HistoryReader::new(&folder.join("journal.sqlite")),
            feed: tokio::sync::watch::channel(()).1,
            tokens: TokenStore::open(&folder.join("tokens.json"), identity.fingerprint()).unwrap(),
            credentials: NodeCredentials::open(&folder.join("node-credentials.json")).unwrap(),
            memory: Span::ZERO,
            watch_limit: Duration::ZERO,
            silence_limit: Duration::ZERO,
            queries: UserLimiter::default(),
            changes: UserLimiter::default(),
            forwards: ForwardLimits::default(),
            answers: AnswerPacer::default(),
            joins: SharedRates::default(),
            refusal_lines: SharedRates::default(),
            code: Arc::new(CodeStores::new(folder.join("code"), &RequestLimits::default())),
            application_questions: ApplicationQuestions::default(),
            limits: RequestLimits::default(),
            private_data: PrivateData::Off,
            user_token_lifetime: None,
            setup: HeadSetup {
                address: "127.0.0.1:0".parse().unwrap(),
                admin_token: folder.join("admin.token"),
                journal: folder.join("journal.sqlite"),
            },
        })
    }

    #[tokio::test]
    async fn a_request_continues_when_its_client_disconnects() {
        let folder = tempfile::tempdir().unwrap();
        let (driver, mut played) = mailbox(1);
        let (spec, key) = (submit().spec, submit().idempotency_key);
        let session = ClientSession::new(ada(), session_context(folder.path(), driver));
        let mut handling = Box::pin(session.submit(context_for(Span::ZERO), Box::new(spec), key));
        assert!(handling.as_mut().now_or_never().is_none());
        drop(handling);
        let Some(Message::Request { by, request: received, .. }) = played.receive().await else { panic!() };
        assert_eq!((by, received), (ada(), Request::Submit(Box::new(submit()))));
    }

    /// Queries wait in the session, not in the driver's mailbox, where others would wait behind them.
    #[tokio::test]
    async fn the_driver_gets_few_queries_of_one_user_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (driver, mut played) = mailbox(100);
        let context = session_context(folder.path(), driver);
        let ask = |by: &str| {
            let session = ClientSession::new(Principal::new(by, Role::User), Arc::clone(&context));
            let jobs = (1..=10_000).map(JobId::new).collect();
            let mut asking = Box::pin(session.show(context_for(Span::ZERO), jobs));
            assert!(asking.as_mut().now_or_never().is_none());
            asking
        };
        let _mallorys: Vec<_> = (0..50).map(|_| ask("mallory")).collect();
        let _adas = ask("ada");
        let mut received = Vec::new();
        while let Some(Some(Message::Query(Query::Show(jobs, _)))) = played.receive().now_or_never() {
            received.push(jobs.len());
        }
        assert_eq!(received, [64, 64, 64], "two parts for mallory, one for ada");
    }
}
