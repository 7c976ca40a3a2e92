//! The interface of the state machine: events go in, effects come out.

use std::collections::BTreeSet;

use cohabit_policy::Plan;
use cohabit_types::{
    ClientRequestId, DeviceId, FeedEvent, Inventory, JobId, NodeId, Notice, Order, PlanRequestId, Principal,
    RankId, Reply, Report, Request, SharingStrategy, Span, Time, UsageRecord, WorkerKey,
};

use crate::accounting_entry::AccountingEntry;
use crate::snapshot_part::SnapshotPart;

/// What can happen to a head. Every event except reports of progress and telemetry is journaled before it is
/// handled.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The operator's settings; the first event of every start.
    HeadStarted(Config),
    /// A client requests a change.
    Client(ClientRequestId, Principal, Request),
    /// A worker joined and holds the ranks that its inventory lists. Any other rank that it was told to start
    /// does not run and never will.
    Joined(WorkerKey, Inventory),
    /// A worker's link broke.
    Lost(WorkerKey, String),
    /// A worker reported.
    Report(WorkerKey, Report),
    /// The policy answered a request for a plan.
    Planned(PlanRequestId, Plan),
    /// The time of [`crate::Head::deadline`] came.
    Alarm,
    /// The interference model changed, so jobs that share devices may have to be separated. Also follows
    /// each start with a policy that predicts interference.
    InterferenceUpdated,
    /// The machine's clock jumped forward by this span, in which nothing could happen.
    ClockSet(Span),
    /// A submission is taken out of the archive with all its jobs. Comes before the request that needs it.
    Restored(SnapshotPart),
    /// The journal up to here came out of a backup. The head whose backup it is went on, and may have given
    /// out numbers that this one does not know.
    BackupRestored {
        /// Jobs up to this number may exist.
        last_number: u64,
        /// Attempts of each job of the backup may exist up to this many numbers behind its latest one.
        attempt_gap: u32,
    },
}

/// What the shell has to do after an event, in this order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Send an order to a worker.
    SendOrder(WorkerKey, Order),
    /// Answer a client's request.
    Answer(ClientRequestId, Reply),
    /// Notify those who watch this job.
    Publish(JobId, Notice),
    /// Remember that a rank found no memory left on its device. Comes before a request for a plan, which has
    /// to take it into account.
    RecordMisfit(MemoryMisfit),
    /// Keep what a rank that ended did with a GPU. A replay repeats it.
    RecordUsage(Box<UsageRecord>),
    /// Keep this for people who want to be told of it. A replay repeats it.
    AddToFeed(Box<FeedEvent>),
    /// Count this in the reports on users and projects. A replay repeats it.
    Account(Box<AccountingEntry>),
    /// Keep this part of a submission on disk, in place of an earlier one: it has left memory.
    Archive(Box<ArchivedPart>),
    /// Ask the policy for a plan; at most one request is open.
    Plan(PlanRequestId),
    /// Close a worker's link, for this reason.
    Close(WorkerKey, String),
}

/// A rank found no memory left on its only device, although no limit of its own stopped it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryMisfit {
    /// The rank that failed.
    pub rank: RankId,
    /// The device.
    pub device: DeviceId,
    /// The device's model.
    pub gpu: String,
    /// How the device was shared.
    pub sharing: SharingStrategy,
    /// The other jobs that ran on the device. Without any, the job does not fit alone.
    pub neighbors: Vec<JobId>,
    /// When the rank ended, by the worker's clock: co-location samples of the device go by the same clock.
    pub at: Time,
}

/// A part of a submission that leaves memory.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedPart {
    /// The number of the submission.
    pub number: u64,
    /// Counts the parts of the submission, from 0.
    pub part: u32,
    /// When the last job of the submission ended.
    pub ended_at: Time,
    /// The submission, and some of its jobs. Together the parts have all of them.
    pub content: SnapshotPart,
}

/// The jobs and nodes that an event changed, or may have changed.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ChangedIds {
    /// Jobs, members, and arrays as a whole.
    pub jobs: BTreeSet<JobId>,
    /// Nodes.
    pub nodes: BTreeSet<NodeId>,
}

/// What a deadline is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineKind {
    /// A node has been unreachable for so long that its attempts are given up.
    NodeLost(NodeId),
    /// The begin time of a job, or the end of its pause before a retry, comes.
    JobEligible(JobId),
    /// A node on which ranks could not start is tried again.
    NodeRetry(NodeId),
    /// The jobs that still run on a drained node are queued again.
    DrainDeadline(NodeId),
    /// A placed job has to leave nodes that will be reserved.
    JobClosing(JobId),
    /// An interactive job has done nothing for as long as it may at most.
    JobIdle(JobId),
    /// A reservation begins or ends.
    Reservation(u64),
    /// The policy wanted to be asked again at this time.
    PlannedWake,
    /// The retention of an ended job is over.
    Retention,
    /// A submission ended so long ago that it is archived.
    Archive,
}

/// The operator's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// After this long, the attempts on an unreachable node are given up. Must exceed the workers'
    /// `orphan-grace` plus the longest stop sequence, or an attempt could run twice.
    pub lost_after: Span,
    /// How long ended jobs are known: may be named, depended on and queued again. The history keeps their
    /// records longer.
    pub retention: Span,
    /// How long ended jobs stay in memory before they are archived, except for a summary. Without effect
    /// unless it is shorter than the retention.
    pub archive_after: Span,
    /// How many attempts a job may lose to failures of nodes and devices before it ends as NODE_FAIL.
    pub node_failures: u32,
    /// How many jobs of one user may run at once, members of arrays one by one; no limit without it. Jobs
    /// that were submitted as an admin do not count.
    pub max_running_jobs: Option<u64>,
    /// Whether users take turns by what they are entitled to.
    pub fair_share: bool,
    /// After how long an interactive job that does nothing gives its place to jobs that wait; never without.
    pub idle_stop: Option<Span>,
    /// Whether the next member of an array takes the place of a short one without a plan. Heads that wrote
    /// older journals planned each start.
    pub succession: bool,
    /// So much work of such members is ordered in advance at one place; nothing where it is zero. A worker
    /// gives back what it has not begun in a few times that.
    pub prefetch: Span,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            lost_after: Span::from_secs(300),
            retention: Span::from_secs(86_400),
            archive_after: Span::from_secs(3_600),
            node_failures: 5,
            max_running_jobs: None,
            fair_share: true,
            idle_stop: Some(Span::from_secs(1_800)),
            succession: true,
            prefetch: Span::from_millis(60),
        }
    }
}
