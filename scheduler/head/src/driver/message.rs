//! Messages to the driver, and from the driver to the sessions of workers.
//!
//! Each query carries where its typed answer goes.

use std::collections::BTreeSet;

use cohabit_actor::{Address, ReplyTo};
use cohabit_scheduler_core::{BriefRecords, ListPart, LiveAccount, PolicyForecasts, SnapshotPart};
use cohabit_types::{
    ApplicationRecord, AttemptId, CheckpointPiece, CheckpointQuery, CheckpointSource, CodeSnapshot,
    ContentHash, CopyId, CopyPiece, CopyRead, DryRun, ExecId, ExecOutput, ExecRead, ExecRequest, Explanation,
    Figures, FileCopyOrder, Filter, ForwardId, ForwardOutput, ForwardPiece, ForwardRead, ForwardRequest,
    InputPiece, Inventory, JobId, JobRecord, JobRef, JobRevision, JobSpec, LogChunk, LogRequest,
    MetricSeries, ModelChoice, Models, NodeId, NodeRecord, NodeReservation, Order, Principal, RankId,
    Refusal, Reply, Report, Request, ShareReport, ShareTable, Time, UsageRecord, WorkerKey,
};
use tokio::sync::oneshot;

use super::dry_run::FinishedDryRun;
use crate::interference::TrainingUpdate;
use crate::journal::JournalWriteError;
use crate::planner::PlanReply;

/// A message to the driver.
#[derive(Debug)]
pub(crate) enum Message {
    /// A client's change; answered when it is durable.
    Request {
        /// The user.
        by: Principal,
        /// The change.
        request: Request,
        /// Archived submissions that the change needs in memory.
        restored: Vec<SnapshotPart>,
        /// Where the reply goes.
        reply_to: ReplyTo<Reply>,
    },
    /// A client asks a query that the head answers from memory.
    Query(Query),
    /// A client requests a dry run of a job.
    DryRun {
        /// The user.
        by: Principal,
        /// The job.
        spec: Box<JobSpec>,
        /// Where the answer goes.
        reply_to: ReplyTo<Result<Box<DryRun>, Refusal>>,
    },
    /// A client asks for the interference models, once this one is chosen.
    Models {
        /// The user.
        by: Principal,
        /// The model to choose; none where the models are only listed.
        choice: Option<ModelChoice>,
        /// Where the answer goes.
        reply_to: ReplyTo<Result<Models, Refusal>>,
    },
    /// The session of a worker.
    Find(WorkerLookup, ReplyTo<Option<WorkerRoute>>),
    /// A worker opened a link.
    Joined {
        /// The link.
        key: WorkerKey,
        /// The node's resources and the ranks that it holds.
        inventory: Inventory,
        /// The session.
        session: SessionHandle,
        /// Completed before that where the journal cannot be written: a worker whose link broke must not stop
        /// its ranks because of that.
        welcome: oneshot::Sender<()>,
        /// Completed when the join is durable.
        handled: ReplyTo<()>,
    },
    /// A worker's link ended.
    Lost(WorkerKey, String),
    /// Reports of a worker; completed when the head has applied them.
    Reports(WorkerKey, Vec<Report>, ReplyTo<()>),
    /// The planner replied to a request for a plan.
    Planned(PlanReply),
    /// The alarm for this deadline fires.
    Alarm(Time),
    /// Forecasts of jobs; `None` if the policy gave none in time.
    Forecast(Option<PolicyForecasts>),
    /// The policy has answered a dry run.
    FinishedDryRun(Box<FinishedDryRun>),
    /// The trainer has new knowledge, or a refit to run.
    TrainingUpdate(TrainingUpdate),
    /// The trainer has learned of misfits.
    MisfitsLearned(TrainingUpdate),
    /// The pause after a training is over.
    TrainingPauseEnded,
    /// Old rows of the history are to be deleted.
    Prune,
    /// The batch is complete: all messages queued behind its first event have been handled.
    Flush,
    /// History has waited for long enough for a commit that takes it along.
    FlushHistory,
    /// All history so far is to be in the journal, for somebody who reads it there.
    SettleHistory(ReplyTo<Result<(), JournalWriteError>>),
    /// The commit in progress has ended, with success or not.
    Committed,
    /// The pause after a failed commit is over.
    Retry,
}

/// A query about what is in memory, with where its answer goes.
#[derive(Debug)]
pub(crate) enum Query {
    /// The jobs that these references mean to this user.
    Resolve(Principal, Vec<JobRef>, ReplyTo<Result<Vec<JobId>, Refusal>>),
    /// A part of a list of jobs.
    List(Filter, ReplyTo<ListPart>),
    /// The records of these jobs.
    Show(Vec<JobId>, ReplyTo<Result<Vec<JobRecord>, Refusal>>),
    /// The records of those of these jobs that are in memory, as lists show them.
    Brief(Vec<JobId>, ReplyTo<BriefRecords>),
    /// Why a job waits, or why it ended as it did.
    Explain(JobId, ReplyTo<Result<Explanation, Refusal>>),
    /// What keeps the head from accepting changes.
    Problems(ReplyTo<Vec<String>>),
    /// The figures for metrics.
    Figures(ReplyTo<Figures>),
    /// What everybody holds, used and is entitled to.
    Shares(ReplyTo<ShareReport>),
    /// The reservations that have not ended.
    Reservations(ReplyTo<Vec<NodeReservation>>),
    /// Whether this user may apply this table.
    CheckShares(Principal, Box<ShareTable>, ReplyTo<Result<(), Refusal>>),
    /// What the live attempts of these jobs have done with their GPUs.
    LiveUsage(BTreeSet<JobId>, ReplyTo<Vec<UsageRecord>>),
    /// What the attempts that run now hold.
    LiveAccounts(ReplyTo<Vec<LiveAccount>>),
    /// All nodes.
    Nodes(ReplyTo<Vec<NodeRecord>>),
    /// The records of those jobs whose revision is not the known one.
    ChangedSince(Vec<JobRevision>, ReplyTo<Result<Vec<JobRecord>, Refusal>>),
    /// The numbers of those submissions among these jobs that are in the archive and that this user may
    /// change.
    Archived(Principal, Vec<JobId>, ReplyTo<BTreeSet<u64>>),
    /// The manifests of the code snapshots that jobs of this user need.
    CodeInUse(String, ReplyTo<BTreeSet<ContentHash>>),
    /// The first of these jobs that is no child of this attempt of an application.
    NoChild(AttemptId, Vec<JobId>, ReplyTo<Option<JobId>>),
    /// The applications of this user, or of all, that have not ended.
    Applications(Option<String>, ReplyTo<Vec<ApplicationRecord>>),
    /// The application with this root job, if it has not ended.
    Application(JobId, ReplyTo<Option<ApplicationRecord>>),
    /// The user and the code snapshot of this job, if it has a live rank on this node.
    CodeOn(NodeId, JobId, ReplyTo<Option<(String, CodeSnapshot)>>),
    /// Where the checkpoints are that this live attempt needs on this node, which has this number in it, with
    /// the worker that keeps them.
    CheckpointsFor(NodeId, AttemptId, u32, ReplyTo<Option<(CheckpointSource, WorkerRoute)>>),
    /// Those of these jobs that are in memory.
    Known(Vec<JobId>, ReplyTo<Vec<JobId>>),
}

impl Query {
    /// Whether the answer says what jobs have to expect, which the policy knows.
    pub(crate) fn needs_forecasts(&self) -> bool {
        match self {
            Query::List(..) | Query::Show(..) | Query::Explain(..) => true,
            Query::Resolve(..)
            | Query::Problems(_)
            | Query::Nodes(_)
            | Query::Figures(_)
            | Query::Shares(_)
            | Query::Reservations(_)
            | Query::CheckShares(..)
            | Query::LiveUsage(..)
            | Query::LiveAccounts(_)
            | Query::ChangedSince(..)
            | Query::Brief(..)
            | Query::Archived(..)
            | Query::CodeInUse(..)
            | Query::Applications(..)
            | Query::Application(..)
            | Query::NoChild(..)
            | Query::CodeOn(..)
            | Query::CheckpointsFor(..)
            | Query::Known(..) => false,
        }
    }
}

/// How to find a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkerLookup {
    /// By a rank of a job in memory that it holds or held.
    Rank(RankId),
    /// By its name.
    Node(String),
}

/// A worker that was found.
#[derive(Debug)]
pub(crate) struct WorkerRoute {
    /// Its node's name.
    pub(crate) node: String,
    /// How to reach it, while it is linked.
    pub(crate) session: Option<Address<WorkerSessionMessage>>,
}

/// The driver's end of a worker's session. Dropped, it ends the session.
#[derive(Debug)]
pub(crate) struct SessionHandle {
    /// Orders to the worker.
    pub(crate) orders: Address<WorkerSessionMessage>,
    /// Ends the session for this reason.
    pub(crate) close: oneshot::Sender<String>,
}

/// A message to a worker's session.
#[derive(Debug)]
pub(crate) enum WorkerSessionMessage {
    /// Send this order, after the orders before it.
    Order(Order),
    /// Ask the worker for a piece of a log.
    ReadLog(LogRequest, ReplyTo<Result<LogChunk, Refusal>>),
    /// Read the metrics of a rank.
    ReadMetrics(RankId, ReplyTo<Result<MetricSeries, Refusal>>),
    /// Start a further process.
    StartExec(Box<ExecRequest>, ReplyTo<Result<(), Refusal>>),
    /// Read what it prints.
    ReadExec(ExecRead, ReplyTo<Result<ExecOutput, Refusal>>),
    /// End it.
    EndExec(ExecId, ReplyTo<Result<(), Refusal>>),
    /// Open a connection to a port of a job.
    OpenForward(ForwardRequest, ReplyTo<Result<(), Refusal>>),
    /// Read what its server sends.
    ReadForward(ForwardRead, ReplyTo<Result<ForwardOutput, Refusal>>),
    /// Pass bytes to its server.
    WriteForward(ForwardPiece, ReplyTo<Result<u64, Refusal>>),
    /// Close it.
    CloseForward(ForwardId, ReplyTo<Result<(), Refusal>>),
    /// Copy files of a job.
    Copy(CopyMessage),
    /// Take a piece of the input of a rank.
    WriteInput(InputPiece, ReplyTo<Result<u64, Refusal>>),
    /// Read a piece of checkpoints.
    ReadCheckpoints(CheckpointQuery, ReplyTo<Result<CheckpointPiece, Refusal>>),
}

/// What a worker is asked about a copy of files.
#[derive(Debug)]
pub(crate) enum CopyMessage {
    /// Begin it.
    Start(Box<FileCopyOrder>, ReplyTo<Result<(), Refusal>>),
    /// Read bytes of it.
    Read(CopyRead, ReplyTo<Result<CopyPiece, Refusal>>),
    /// End it.
    End(CopyId, ReplyTo<Result<(), Refusal>>),
}
