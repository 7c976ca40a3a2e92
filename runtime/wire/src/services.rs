//! The services of the current protocol: what clients ask of the head, and what head and worker tell each
//! other.
//!
//! Calls of one link run side by side: a caller that needs them in order sends the next when the one before
//! has come back. A refusal is part of an answer. A tarpc `ServerError` only ever means that the other side
//! broke a promise; its `kind` arrives wrong, so nothing reads it.

use cohabit_types::{
    ActorListing, ApplicationAnswer, ApplicationOwner, ApplicationQuestion, ApplicationRecord, ChangeResult,
    CheckpointPiece, CheckpointQuery, CheckpointRequest, CodeRequest, ContentHash, ContentPiece, CopyId,
    CopyPiece, CopyRead, CopyRequest, DrainRequest, DryRun, ExecId, ExecOutput, ExecRead, ExecRequest,
    Explanation, Feed, FeedCursor, Figures, FileCopyOrder, Filter, ForwardId, ForwardOutput, ForwardPiece,
    ForwardRead, ForwardRequest, HeadStatus, InputPiece, IssuedToken, JobChange, JobId, JobRecord, JobRef,
    JobRevision, JobSettings, JobSpec, JobUpdates, ListPage, LogChunk, LogRequest, MetricSeries, ModelChoice,
    Models, NewToken, NodeRecord, NodeReservation, ObjectListing, Order, RankId, Refusal, RefusedWorker,
    Report, ReservationRequest, ShareReport, ShareTable, SubmitReceipt, TaskListing, TokenRecord,
    UpdateCursor, UsageRecord, UsageReport, UsageReportRequest,
};

/// Client to head. Changes come back when they are durable.
#[tarpc::service]
#[trait_variant::make(Send)]
pub trait ClientService {
    /// Submits a job. A second submission of the same user with the same key is answered with the first job.
    async fn submit(spec: Box<JobSpec>, idempotency_key: Option<String>) -> Result<SubmitReceipt, Refusal>;
    /// Applies a change to jobs; the results are in the order of the jobs.
    async fn change_jobs(change: JobChange, jobs: Vec<JobId>) -> Result<Vec<(JobId, ChangeResult)>, Refusal>;
    /// Changes the settings of jobs that wait; the results are in the order of the jobs.
    async fn update_jobs(
        update: JobSettings,
        jobs: Vec<JobId>,
    ) -> Result<Vec<(JobId, ChangeResult)>, Refusal>;
    /// Gives a node no new jobs; answers with its name. For admins.
    async fn drain_node(drain: DrainRequest) -> Result<String, Refusal>;
    /// Gives a drained node jobs again; answers with its name. For admins.
    async fn resume_node(name: String) -> Result<String, Refusal>;
    /// Forgets which worker a node belongs to, so that its next one is taken for it; answers with its name.
    /// For admins.
    async fn unbind_node(name: String) -> Result<String, Refusal>;
    /// Workers that wanted to act as a node of another one, since the head started. For admins.
    async fn refused_workers() -> Result<Vec<RefusedWorker>, Refusal>;
    /// The jobs that these references mean to this user, in their order.
    async fn resolve(references: Vec<JobRef>) -> Result<Vec<JobId>, Refusal>;
    /// The applications of this user, or of all, that have not ended, by user and name.
    async fn applications(owner: ApplicationOwner) -> Result<Vec<ApplicationRecord>, Refusal>;
    /// The actors of the application with this root job, as its coordinator tells. For its user and admins.
    async fn actors(application: JobId) -> Result<ActorListing, Refusal>;
    /// The tasks of the application with this root job, as its coordinator tells. For its user and admins.
    async fn tasks(application: JobId) -> Result<TaskListing, Refusal>;
    /// The objects of the application with this root job, as its coordinator tells. For its user and admins.
    async fn objects(application: JobId) -> Result<ObjectListing, Refusal>;
    /// Questions about the application of this coordinator, each once; a long poll, which may end with none.
    async fn questions() -> Result<Vec<ApplicationQuestion>, Refusal>;
    /// Answers the question with this number about the application of this coordinator.
    async fn answer_question(number: u64, answer: Box<ApplicationAnswer>) -> Result<(), Refusal>;
    /// Those of these files that the head does not store for this user, in their order.
    async fn missing_content(files: Vec<ContentHash>) -> Result<Vec<ContentHash>, Refusal>;
    /// Stores pieces of files for this user; comes back when those that are complete are durable. Answers for
    /// each piece with how many bytes of its file the head has: the next piece begins there.
    async fn put_content(pieces: Vec<ContentPiece>) -> Result<Vec<u64>, Refusal>;
    /// A piece of the code of a job, for its user and admins.
    async fn read_code(request: CodeRequest) -> Result<ContentPiece, Refusal>;
    /// A page of jobs, the newest last.
    async fn list(filter: Filter) -> Result<ListPage, Refusal>;
    /// The records of these jobs, in their order.
    async fn show(jobs: Vec<JobId>) -> Result<Vec<JobRecord>, Refusal>;
    /// Why a job waits, or why it ended as it did.
    async fn explain(job: JobId) -> Result<Explanation, Refusal>;
    /// Where this job would run if it were submitted now, and its forecast.
    async fn dry_run(spec: Box<JobSpec>) -> Result<Box<DryRun>, Refusal>;
    /// All nodes.
    async fn nodes() -> Result<Vec<NodeRecord>, Refusal>;
    /// Records of these jobs whose revision is no longer the known one; a long poll, which may end with none.
    async fn watch(known: Vec<JobRevision>) -> Result<Vec<JobRecord>, Refusal>;
    /// A piece of the output of a rank; a long poll at its end.
    async fn read_log(request: LogRequest) -> Result<LogChunk, Refusal>;
    /// Makes a token. For admins.
    async fn create_token(token: NewToken) -> Result<IssuedToken, Refusal>;
    /// All tokens, without secrets. For admins.
    async fn list_tokens() -> Result<Vec<TokenRecord>, Refusal>;
    /// Revokes a token, at once. For admins.
    async fn revoke_token(name: String) -> Result<(), Refusal>;
    /// The interference models.
    async fn list_models() -> Result<Models, Refusal>;
    /// Chooses the model that the head uses; answers with all models. For admins.
    async fn choose_model(choice: ModelChoice) -> Result<Models, Refusal>;
    /// Whether the head is there.
    async fn ping();
    /// The token of this client, without its secret.
    async fn own_token() -> Result<TokenRecord, Refusal>;
    /// How the head is set up. For admins.
    async fn head_status() -> Result<HeadStatus, Refusal>;
    /// What keeps the head from accepting changes, a sentence with the remedy for each problem.
    async fn head_problems() -> Result<Vec<String>, Refusal>;
    /// Jobs of all users that have changed since, the earliest change first; where to begin without a cursor.
    async fn job_updates(after: Option<UpdateCursor>) -> Result<JobUpdates, Refusal>;
    /// What is worth telling of what has happened since: to admins of everything, to users of their jobs. A
    /// long poll, which may end with nothing; where to begin, at once, without a cursor.
    async fn feed(after: Option<FeedCursor>) -> Result<Feed, Refusal>;
    /// The metrics of a rank over its steps, for the user of its job and admins.
    async fn read_metrics(rank: RankId) -> Result<MetricSeries, Refusal>;
    /// A piece of the input of a rank, for the user of its job and admins; comes back when its worker has it.
    /// Answers how many bytes of the input are there: the next piece begins there.
    async fn write_input(piece: InputPiece) -> Result<u64, Refusal>;
    /// What there is and what has been counted, for metrics.
    async fn figures() -> Result<Box<Figures>, Refusal>;
    /// What ranks of these jobs did with their GPUs: those that have ended first, then those that run.
    async fn usage(jobs: Vec<JobId>) -> Result<Vec<UsageRecord>, Refusal>;
    /// What everybody holds, used and is entitled to.
    async fn shares() -> Result<Box<ShareReport>, Refusal>;
    /// Divides the cluster by this table from now on, or only checks it. For admins.
    async fn apply_shares(table: Box<ShareTable>, dry_run: bool) -> Result<(), Refusal>;
    /// Starts a further process beside a running rank, for the user of its job and admins.
    async fn start_exec(request: Box<ExecRequest>) -> Result<(), Refusal>;
    /// A piece of the output of a further process; a long poll at its end. Its worker ends a process of which
    /// nobody has asked for output for a minute.
    async fn read_exec(read: ExecRead) -> Result<ExecOutput, Refusal>;
    /// Ends a further process, if it runs, and forgets it.
    async fn end_exec(process: ExecId) -> Result<(), Refusal>;
    /// Reserves nodes for some time. For admins.
    async fn reserve(request: Box<ReservationRequest>) -> Result<Box<NodeReservation>, Refusal>;
    /// Cancels a reservation. For admins.
    async fn cancel_reservation(number: u64) -> Result<Box<NodeReservation>, Refusal>;
    /// The reservations that have not ended.
    async fn reservations() -> Result<Vec<NodeReservation>, Refusal>;
    /// Opens a connection to a port of a running job, for the user of the job and admins. Its worker closes a
    /// connection of which nobody has asked for bytes for a minute.
    async fn open_forward(request: ForwardRequest) -> Result<(), Refusal>;
    /// Bytes from the server of a connection; a long poll where there are none.
    async fn read_forward(read: ForwardRead) -> Result<ForwardOutput, Refusal>;
    /// Bytes to the server of a connection. Answers how many it has got since its begin: the next piece
    /// begins there.
    async fn write_forward(piece: ForwardPiece) -> Result<u64, Refusal>;
    /// Closes a connection, if it is open, and forgets it.
    async fn close_forward(connection: ForwardId) -> Result<(), Refusal>;
    /// What users and projects had over some days: to admins and viewers of all, to users of themselves and
    /// their project.
    async fn usage_report(request: UsageReportRequest) -> Result<Box<UsageReport>, Refusal>;
    /// Begins to copy files of a job, which may have ended, for the user of the job and admins. Its worker
    /// ends a copy of which nobody has asked for bytes for a minute.
    async fn start_copy(request: Box<CopyRequest>) -> Result<(), Refusal>;
    /// Bytes of a copy; a long poll where there are none.
    async fn read_copy(read: CopyRead) -> Result<CopyPiece, Refusal>;
    /// Ends a copy, if it goes on, and forgets it.
    async fn end_copy(copy: CopyId) -> Result<(), Refusal>;
}

/// Worker to head.
#[tarpc::service]
#[trait_variant::make(Send)]
pub trait HeadService {
    /// What happened, in order; comes back when the head has taken it in.
    async fn report(reports: Vec<Report>);
    /// The worker is there.
    async fn heartbeat();
    /// A piece of the code of a job that has a rank on this worker.
    async fn read_code(request: CodeRequest) -> Result<ContentPiece, Refusal>;
    /// A piece of the checkpoints of a job that are on another node, for an attempt that is to start here.
    async fn read_checkpoints(request: CheckpointRequest) -> Result<CheckpointPiece, Refusal>;
}

/// Head to worker.
#[tarpc::service]
#[trait_variant::make(Send)]
pub trait WorkerService {
    /// What to do, in order; comes back when the worker has taken it in.
    async fn order(orders: Vec<Order>);
    /// A piece of the output of a rank; a long poll at its end.
    async fn read_log(request: LogRequest) -> Result<LogChunk, Refusal>;
    /// The metrics of a rank over its steps.
    async fn read_metrics(rank: RankId) -> Result<MetricSeries, Refusal>;
    /// A piece of the input of a rank.
    async fn write_input(piece: InputPiece) -> Result<u64, Refusal>;
    /// A piece of the checkpoints of a job that this worker keeps.
    async fn read_checkpoints(query: CheckpointQuery) -> Result<CheckpointPiece, Refusal>;
    /// Starts a further process beside a running rank.
    async fn start_exec(request: Box<ExecRequest>) -> Result<(), Refusal>;
    /// A piece of the output of a further process; a long poll at its end.
    async fn read_exec(read: ExecRead) -> Result<ExecOutput, Refusal>;
    /// Ends a further process, if it runs, and forgets it.
    async fn end_exec(process: ExecId) -> Result<(), Refusal>;
    /// Opens a connection to a port of a running job.
    async fn open_forward(request: ForwardRequest) -> Result<(), Refusal>;
    /// Bytes from the server of a connection; a long poll where there are none.
    async fn read_forward(read: ForwardRead) -> Result<ForwardOutput, Refusal>;
    /// Bytes to the server of a connection.
    async fn write_forward(piece: ForwardPiece) -> Result<u64, Refusal>;
    /// Closes a connection, if it is open, and forgets it.
    async fn close_forward(connection: ForwardId) -> Result<(), Refusal>;
    /// Begins to copy files of a job.
    async fn start_copy(order: Box<FileCopyOrder>) -> Result<(), Refusal>;
    /// Bytes of a copy; a long poll where there are none.
    async fn read_copy(read: CopyRead) -> Result<CopyPiece, Refusal>;
    /// Ends a copy, if it goes on, and forgets it.
    async fn end_copy(copy: CopyId) -> Result<(), Refusal>;
}
