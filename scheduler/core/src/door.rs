//! What goes into the head's state machine and what comes out of it.

use cohabit_policy::Plan;
use cohabit_types::{
    ClientRequestId, Inventory, JobId, NodeId, Notice, Order, PlanRequestId, Principal, Reply, Report,
    Request, Span, WorkerKey,
};
use serde::{Deserialize, Serialize};

/// What can happen to a head. All but progress reports enter the journal before they are handled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// The operator's settings; the first event of every start.
    Configured(Config),
    /// A client asks for a change.
    Client(ClientRequestId, Principal, Request),
    /// A worker joined, and holds what its inventory says: every rank it was ever told to start and is not in
    /// there does not run and never will.
    Joined(WorkerKey, Inventory),
    /// A worker's link broke.
    Lost(WorkerKey, String),
    /// A worker reported.
    Report(WorkerKey, Report),
    /// The policy answered.
    Planned(PlanRequestId, Plan),
    /// The deadline came.
    Alarm,
    /// The policy knows more of interference than before: who runs beside whom may have to change. Also
    /// follows each start with such a policy.
    Learned,
    /// The machine's clock was set forward by so much, in which nothing could happen.
    ClockSet(Span),
}

/// What a head does, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Send an order.
    Tell(WorkerKey, Order),
    /// Answer a request.
    Answer(ClientRequestId, Reply),
    /// Tell whoever watches this job.
    Publish(JobId, Notice),
    /// Ask the policy; at most one question is open.
    Plan(PlanRequestId),
    /// Break a worker's link.
    Close(WorkerKey, String),
}

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineKind {
    /// A node was unreachable for so long that its attempts are given up.
    NodeLost(NodeId),
    /// A job's begin time, or the end of its pause, comes.
    Eligible(JobId),
    /// A node that had no room is tried again.
    NodeTried(NodeId),
    /// The policy wanted to be asked again.
    Wake,
    /// Ended jobs have been kept for long enough.
    Retention,
}

/// What the head's operator may set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// After this long an unreachable node's attempts are given up. Must exceed the workers' `orphan-grace`
    /// and the longest stop sequence, else an attempt could run twice.
    pub lost_after: Span,
    /// How long ended jobs stay in memory; the history keeps them longer.
    pub retention: Span,
    /// How often a job may lose its node before it becomes NODE_FAIL.
    pub node_failures: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { lost_after: Span::from_secs(300), retention: Span::from_secs(86_400), node_failures: 5 }
    }
}
