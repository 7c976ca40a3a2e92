//! What clients ask of the fake head, and what it does about it.

use cohabit_client::types::{
    ApplicationAnswer, ApplicationOwner, ApplicationQuestion, ApplicationRecord, ChangeResult, ContentHash,
    DryRun, Explanation, Feed, FeedCursor, Filter, InputPiece, IssuedToken, JobChange, JobId, JobRecord,
    JobRef, JobRevision, JobSettings, JobSpec, JobUpdates, ListPage, LogChunk, LogRequest, ModelChoice,
    Models, NewToken, NodeRecord, RankId, Refusal, RefusedWorker, SubmitReceipt, TokenRecord, UpdateCursor,
};

/// What a client asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Call {
    Submit(Box<JobSpec>, Option<String>),
    ChangeJobs(JobChange, Vec<JobId>),
    UpdateJobs(JobSettings, Vec<JobId>),
    DrainNode(String),
    ResumeNode(String),
    UnbindNode(String),
    RefusedWorkers,
    Resolve(Vec<JobRef>),
    List(Filter),
    Show(Vec<JobId>),
    Explain(JobId),
    DryRun(Box<JobSpec>),
    Nodes,
    Watch(Vec<JobRevision>),
    ReadLog(LogRequest),
    CreateToken(NewToken),
    ListTokens,
    OwnToken,
    HeadStatus,
    HeadProblems,
    JobUpdates(Option<UpdateCursor>),
    Feed(Option<FeedCursor>),
    ReadMetrics(RankId),
    WriteInput(InputPiece),
    /// Any call about further processes, or connections to ports.
    Exec,
    Figures,
    Shares,
    ApplyShares,
    Reserve,
    CancelReservation,
    Reservations,
    Usage(Vec<JobId>),
    RevokeToken(String),
    ListModels,
    ChooseModel(ModelChoice),
    /// How many files the client asks for.
    MissingContent(usize),
    /// Each piece by its file, its offset and its length.
    PutContent(Vec<(ContentHash, u64, usize)>),
    Applications(ApplicationOwner),
    Actors(JobId),
    Tasks(JobId),
    Objects(JobId),
    Questions,
    AnswerQuestion(u64, Box<ApplicationAnswer>),
}

/// What the fake head does about a call.
#[derive(Debug, Clone)]
pub(crate) enum Turn {
    Accepted(SubmitReceipt),
    Changed(Vec<(JobId, ChangeResult)>),
    Node(String),
    RefusedWorkers(Vec<RefusedWorker>),
    Resolved(Vec<JobId>),
    Listed(ListPage),
    Updates(JobUpdates),
    Feed(Feed),
    Jobs(Vec<JobRecord>),
    Explained(Explanation),
    DryRun(Box<DryRun>),
    Nodes(Vec<NodeRecord>),
    Log(LogChunk),
    Token(IssuedToken),
    Tokens(Vec<TokenRecord>),
    Revoked,
    Models(Models),
    Applications(Vec<ApplicationRecord>),
    Inspected(ApplicationAnswer),
    Questions(Vec<ApplicationQuestion>),
    AnswerTaken,
    Refuse(Refusal),
    /// Breaks the caller's connection.
    Cut,
    /// Keeps the caller waiting.
    Wait,
}
