//! What clients ask of the head, and what it answers.
//!
//! A [`Request`] changes something and is answered by a [`Reply`]: the head's state machine takes the one and
//! gives the other. Neither travels: on links each change and each question is a method of its own, with the
//! types below as arguments and results. A refusal is a result with a code and a sentence, never a broken
//! connection.

use serde::{Deserialize, Serialize};

use crate::{
    Bytes, DrainRequest, JobEvent, JobId, JobRecord, JobSettings, JobSpec, JobState, NodeReservation,
    ReservationRequest, ShareTable, Span, Time,
};

/// A change that a client asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Run a job.
    Submit(Box<Submit>),
    /// Apply this change to each of these jobs.
    Change(JobChange, Vec<JobId>),
    /// Change the settings of each of these jobs, which wait.
    Update(JobSettings, Vec<JobId>),
    /// Give a node no new jobs.
    Drain(DrainRequest),
    /// Give a node jobs again.
    Resume(String),
    /// Divide the cluster by this table from now on.
    ApplyShares(Box<ShareTable>),
    /// Reserve nodes for some time.
    Reserve(Box<ReservationRequest>),
    /// End the reservation with this number, or never begin it.
    CancelReservation(u64),
}

/// A job to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submit {
    /// The job.
    pub spec: JobSpec,
    /// A second submission by the same user with the same key is answered with the first one's number.
    pub idempotency_key: Option<String>,
    /// What is expected of the job; filled in by the head before the request enters the journal.
    pub estimate: Option<Estimate>,
}

/// What is expected of a job, frozen when it is submitted.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Training iterations.
    pub iterations: Option<u64>,
    /// Time it runs for when alone.
    pub runtime: Option<Span>,
    /// Memory of each device that it needs, with a margin, where earlier runs tell it well enough.
    #[serde(default)]
    pub gpu_memory: Option<Bytes>,
    /// What the estimate rests on, for `explain`.
    pub basis: String,
}

/// A change to existing jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobChange {
    /// End it, by the stop sequence if it runs.
    Cancel,
    /// Do not start it.
    Hold,
    /// Start it after all.
    Release,
    /// Stop it if it runs, and queue it again; also revives a job that ended.
    Requeue,
    /// End it, by SIGKILL at once if it runs, even if it is already being stopped.
    Kill,
    /// End a part of an application that it does not need any more, by the stop sequence if it runs.
    Withdraw,
}

impl JobChange {
    /// The verb: "cannot …".
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            JobChange::Cancel => "cancel",
            JobChange::Hold => "hold",
            JobChange::Release => "release",
            JobChange::Requeue => "requeue",
            JobChange::Kill => "kill",
            JobChange::Withdraw => "withdraw",
        }
    }
}

/// The answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The job is durably known under this number.
    Accepted {
        /// The job, or the array as a whole.
        job: JobId,
        /// How many members it has; 1 for a plain job.
        members: u64,
        /// What whoever submits it should know, for people.
        notes: Vec<String>,
    },
    /// The result of the change, for each job in the order asked.
    Changed(Vec<(JobId, ChangeResult)>),
    /// The node's name.
    Node(String),
    /// The table of shares is applied, or was so already.
    SharesApplied,
    /// The reservation, as it is made or was cancelled.
    Reservation(Box<NodeReservation>),
    /// Nothing was changed.
    Refused(Refusal),
}

/// A job that the head has taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmitReceipt {
    /// The job, or the array as a whole.
    pub job: JobId,
    /// How many members it has; 1 for a plain job.
    pub members: u64,
    /// What whoever submits it should know, for people: sentences without a full stop.
    pub notes: Vec<String>,
}

/// The result of a change to one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeResult {
    /// It is done, or under way.
    Done,
    /// It already is so.
    Already,
    /// It cannot be done.
    Refused(Refusal),
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// For programs.
    pub code: RefusalCode,
    /// For people: what was wrong, where, and what to do.
    pub message: String,
}

impl Refusal {
    /// A refusal with this code and sentence.
    #[must_use]
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into() }
    }
}

/// Why something was not done, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The request makes no sense.
    Invalid,
    /// No node of the cluster can ever meet it.
    Unsatisfiable,
    /// There is no such job, node or token.
    NotFound,
    /// A name fits several jobs.
    Ambiguous,
    /// The token does not allow it.
    NotAllowed,
    /// The job is in a state in which that cannot be done.
    WrongState,
    /// The head cannot do it now; trying later may help.
    Unavailable,
    /// The head is at fault.
    Internal,
    /// The head or a worker cannot write down what was asked: its disk is full, or fails. Trying later may
    /// help.
    StorageFailed,
    /// A limit of its user or project does not allow it now.
    Limit,
}

/// A job and the revision of it that the client has seen; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRevision {
    /// Which job.
    pub job: JobId,
    /// What was seen last.
    pub revision: u64,
}

/// Which jobs to list.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Any of these states; empty for every state.
    pub states: Vec<JobState>,
    /// Only of this user.
    pub user: Option<String>,
    /// Only with this name.
    pub name: Option<String>,
    /// Only those live now, or ended after this time; no limit without it.
    pub ended_after: Option<Time>,
    /// Only after this job; how pages follow one another.
    pub after: Option<JobId>,
    /// Members of this array instead of whole arrays.
    pub members_of: Option<u64>,
    /// At most this many.
    pub limit: u32,
}

/// Why a job waits, or why it ended as it did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// For people, with numbers.
    pub sentences: Vec<String>,
    /// Everything that happened to it.
    pub history: Vec<JobEvent>,
}

/// A page of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListPage {
    /// Newest last; attempts and stories are left out.
    pub jobs: Vec<JobRecord>,
    /// Whether there are more after the last of them.
    pub more: bool,
}

/// What the core publishes about a job: it wakes watchers and feeds the history, and never leaves the head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Notice {
    /// The job changed; its record now has this revision.
    Changed(u64),
    /// The job ended: the final record, for the history.
    Ended(Box<JobRecord>),
}
