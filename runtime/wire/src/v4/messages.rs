//! The messages of clients of protocol 4 that protocol 5 no longer has. Frozen: not a field may change.

use std::fmt;

use cohabit_types::{self as types, Bytes, Filter, JobId, JobRef, JobRevision, ModelChoice, Span, Time};
use serde::{Deserialize, Serialize};

use super::JobSpec;
use super::jobs::{JobEvent, JobRecord, ListPage};
use super::node::NodeRecord;
use super::predictions::DryRun;
use super::principal::Role;
use super::refusal::{ChangeResult, Refusal};

/// A change that a client asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Submit a job.
    Submit(Box<Submit>),
    /// Apply a change to each of these jobs.
    Change(JobChange, Vec<JobId>),
    /// Give a node no new jobs.
    Drain(String),
    /// Give a node jobs again.
    Resume(String),
}

/// A job to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submit {
    /// The job.
    pub spec: JobSpec,
    /// The same key of the same user is the same job.
    pub idempotency_key: Option<String>,
    /// A head ignores what a client says here.
    pub estimate: Option<Estimate>,
}

/// What is expected of a job.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Training iterations.
    pub iterations: Option<u64>,
    /// How long it runs alone.
    pub runtime: Option<Span>,
    /// Memory of each device.
    pub gpu_memory: Option<Bytes>,
    /// What the estimate rests on.
    pub basis: String,
}

/// A change to existing jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobChange {
    /// End it, by the stop sequence if it runs.
    Cancel,
    /// Do not start it.
    Hold,
    /// Start it after all.
    Release,
    /// Stop it if it runs, and queue it again; also revives a job that ended.
    Requeue,
}

/// The answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The job is durable.
    Accepted {
        /// The job, or the array as a whole.
        job: JobId,
        /// How many members it has; 1 for a plain job.
        members: u64,
    },
    /// The result of the change, for each job in the order asked.
    Changed(Vec<(JobId, ChangeResult)>),
    /// The name of the node.
    Node(String),
    /// Nothing was changed.
    Refused(Refusal),
}

/// A question that changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Query {
    /// The jobs that these references mean.
    Resolve(Vec<JobRef>),
    /// A page of jobs.
    List(Filter),
    /// The records of these jobs.
    Show(Vec<JobId>),
    /// Why a job waits, or why it ended as it did.
    Explain(JobId),
    /// Where this job would run, and its forecast.
    Consider(Box<JobSpec>),
    /// All nodes.
    Nodes,
    /// Records that have changed since.
    Watch(Vec<JobRevision>),
}

/// The answer to a [`Query`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The jobs that were meant.
    Resolved(Vec<JobId>),
    /// A page of jobs.
    Listed(ListPage),
    /// The records asked for, or changed.
    Jobs(Vec<JobRecord>),
    /// An explanation.
    Explained {
        /// Sentences for people.
        sentences: Vec<String>,
        /// Everything that happened to the job.
        story: Vec<JobEvent>,
    },
    /// Where the job would run, and its forecast.
    Considered(Box<DryRun>),
    /// All nodes.
    Nodes(Vec<NodeRecord>),
    /// No answer.
    Refused(Refusal),
}

/// What an admin asks about tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenRequest {
    /// Make one.
    Create {
        /// The user's name on jobs.
        name: String,
        /// What it allows.
        role: Role,
        /// The account as which its jobs run.
        account: Option<String>,
        /// How long it is good for.
        expires_in: Option<Span>,
    },
    /// List all.
    List,
    /// Revoke this one.
    Revoke(String),
}

/// The answer to a [`TokenRequest`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenAnswer {
    /// The whole text of the new token.
    Created(String),
    /// All tokens, without secrets.
    Listed(Vec<TokenRecord>),
    /// The token is revoked.
    Revoked,
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// Whose it is.
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// The account as which its jobs run, where it is not named like the token.
    pub account: Option<String>,
    /// When it was made.
    pub created_at: Time,
    /// When it ceases to be good.
    pub expires_at: Option<Time>,
}

impl From<cohabit_types::TokenRecord> for TokenRecord {
    fn from(record: cohabit_types::TokenRecord) -> TokenRecord {
        let cohabit_types::TokenRecord { name, role, account, node: _, created_at, expires_at } = record;
        TokenRecord { name, role: role.into(), account, created_at, expires_at }
    }
}

/// Never shows the secret.
impl fmt::Debug for TokenAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenAnswer::Created(_) => f.write_str("Created(secret)"),
            TokenAnswer::Listed(tokens) => f.debug_tuple("Listed").field(tokens).finish(),
            TokenAnswer::Revoked => f.write_str("Revoked"),
        }
    }
}

/// What is asked about the interference models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelRequest {
    /// All models.
    List,
    /// Go by this one.
    Use(ModelChoice),
}

impl From<JobChange> for types::JobChange {
    fn from(change: JobChange) -> types::JobChange {
        match change {
            JobChange::Cancel => types::JobChange::Cancel,
            JobChange::Hold => types::JobChange::Hold,
            JobChange::Release => types::JobChange::Release,
            JobChange::Requeue => types::JobChange::Requeue,
        }
    }
}
